"""The whole fleet as docker-compose.yml runs it, with no more rights than deploy/ gives."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psycopg
import pytest
import redis

from demo.embedded.servers import Redis
from demo.embedded.welcome import answers
from lab.ports import free_ports
from tests.support.composed import OURS, SERVICES
from tests.support.deployed import ADMIN, Deployed, deployed
from tests.support.everybody import asked
from tests.support.receiver import Receiver
from tests.support.rollup import is_complete
from tests.support.world import PATIENCE, Service, World, eventually
from unified_log.readers.handler import START_OVER
from unified_log.streamer.held_snapshots import OLDEST

TOTALS, RATINGS = ("consumer0", "consumer1"), "ratings0"
# Nobody can see these work: the migrations are done, and the night is long.
QUIET = {"migrate", "rights", "simulator", "reconciler"}
WITH_A_CHECK = [name for name in OURS if "rocket_rides.health" in str(SERVICES[name])]
STARS = "SELECT stars FROM rating_sums"
# What a role has beside the schema that it owns, or has rights in.
MORE = """
    SELECT rolname FROM pg_roles, pg_database
    WHERE rolcanlogin AND rolname <> 'postgres' AND datname = current_database() AND (
        rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls
        OR datdba = pg_roles.oid
        OR has_database_privilege(rolname, datname, 'CREATE, TEMPORARY')
        OR has_schema_privilege(rolname, 'public', 'CREATE'))
"""
OWNERS = """
    SELECT DISTINCT relowner::regrole::text FROM pg_class WHERE relnamespace = 'rides'::regnamespace
"""
WRITERS = """
    SELECT DISTINCT rolname FROM pg_roles, pg_tables
    WHERE schemaname = 'rides' AND tablename = %s AND rolcanlogin AND NOT rolsuper
      AND has_any_column_privilege(rolname, 'rides.' || tablename, 'INSERT, UPDATE')
"""
SESSIONS = """
    SELECT DISTINCT usename FROM pg_stat_activity
    WHERE application_name ~ %s AND datname = current_database()
"""
# Who has the sessions of a name.
AS = {
    "^api": "api",
    "^streamer": "streamer",
    "^reader (total|ratings)": "totals",
    "^rollup": "rollup",
    "^(receipts|inbox)": "receipts",
    "^watch": "onlooker",
}


class Fleet(NamedTuple):
    deployed: Deployed
    world: World
    log: redis.Redis
    receiver: Receiver
    services: dict[str, Service]
    ports: dict[str, int]

    def url(self, name: str, path: str) -> str:
        return f"http://127.0.0.1:{self.ports[name]}{path}"

    def post(self, path: str, **form: Any) -> httpx.Response:
        return asked(lambda: httpx.post(self.url("api", path), data=form, timeout=PATIENCE))

    def has_all(self) -> bool:
        world, [rated] = self.world, self.world.connection.execute(STARS).fetchone() or (0,)
        rides = world.value("SELECT count(*) FROM rides")
        return (
            {world.standing(name) for name in TOTALS} == {world.truth}
            and rated == world.value("SELECT coalesce(sum(stars), 0) FROM ratings")
            and is_complete(world)
            and rides == world.value("SELECT count(*) FROM receipts WHERE outcome = 'delivered'")
        )


@pytest.fixture(scope="module")
def fleet(
    redis_of_kind: Callable[[str], Redis], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Fleet]:
    """Every service that lasts; of those that there are two of, both."""
    folder = tmp_path_factory.mktemp("deployed")
    with (
        Receiver() as receiver,
        deployed(redis_of_kind("valkey"), folder, RECEIPT_URL=receiver.url) as (one, world, log),
    ):
        ports = {"api": free_ports(), "watch": free_ports()}
        given = {"API_PORT": str(ports["api"]), "WATCH_PORT": str(ports["watch"])}
        given["API_WORKERS"] = "1"
        services = {}
        for name in [each for each in OURS if each not in QUIET]:
            for number in range(SERVICES[name].get("deploy", {}).get("replicas", 1)):
                services[f"{name}-{number}"] = one.start(world, name, **given)
            if name in ports:  # the API first: starting all at once takes each too long
                at = f"127.0.0.1:{ports[name]}"
                eventually(lambda: answers(at, "/healthz"), name, 2 * PATIENCE)  # noqa: B023
        yield Fleet(one, world, log, receiver, services, ports)


def test_every_service_works_as_its_own_role_and_user(fleet: Fleet) -> None:
    """They take rides and ratings, count, deliver, and heal a log that is gone."""
    for distance in ("1.001", "2.002"):
        ride = fleet.post("/rides", distance=distance).json()["ride"]["id"]
        assert fleet.post(f"/rides/{ride}/rating", stars=5).status_code in (200, 201)
    eventually(fleet.has_all, "all rides everywhere")
    fleet.log.delete(fleet.world.stream)
    for _ in range(3):
        assert fleet.post("/rides", distance="5").status_code == 201
    eventually(fleet.has_all, "all rides everywhere, once more")
    paths = {"api": ("/readyz", "/consumers"), "watch": ("/", "/metrics", "/status.json")}
    for name, each in paths.items():
        for path in each:
            answer = httpx.get(fleet.url(name, path), timeout=PATIENCE)
            assert answer.status_code == 200, path
    assert all(
        eventually(lambda: fleet.deployed.is_healthy(fleet.world, name))  # noqa: B023
        for name in WITH_A_CHECK
    )
    said = [each.output.read_text() for each in fleet.services.values()]
    assert not any("permission denied" in text or "NOPERM" in text for text in said)
    assert "permission denied" not in fleet.world.postgres.log.read_text()
    denied = {entry["object"] for entry in fleet.log.acl_log()}
    assert denied <= {"client|setinfo", "client", "config|get", "config"}  # which may be denied
    with psycopg.connect(fleet.world.postgres.url) as operator:
        for name, role in AS.items():
            assert operator.execute(SESSIONS, [name]).fetchall() == [(role,)]


@pytest.mark.proves("few-rights")
def test_a_role_owns_and_may_do_nothing_else(fleet: Fleet) -> None:
    with psycopg.connect(fleet.world.postgres.url) as operator:
        assert operator.execute(MORE).fetchall() == []
        assert operator.execute(OWNERS).fetchall() == [("rides",)]
        for table, writers in {
            "rides": {"rides", "api"},
            "streamer_state": {"rides", "streamer"},
            "consumer_states": {"rides", "totals"},
            "ride_minutes": {"rides", "rollup"},
            "receipts": {"rides", "receipts"},
            "approvals": {"rides", "reconciler"},  # of which it marks one as used
            "log_kinds": {"rides"},
        }.items():
            assert {name for (name,) in operator.execute(WRITERS, [table])} == writers


def test_the_streamer_sees_who_holds_an_old_snapshot(fleet: Fleet) -> None:
    given = fleet.deployed.environment("streamer")
    role = {"user": given["PGUSER"], "password": given["PGPASSWORD"]}
    url = psycopg.conninfo.make_conninfo(given["DATABASE_URL"], **role)
    with (
        psycopg.connect(fleet.world.postgres.url) as holder,
        psycopg.connect(url, autocommit=True) as streamer,
    ):
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("SELECT FROM pg_class LIMIT 1")
        who = f"session {holder.info.backend_pid}"
        eventually(lambda: (streamer.execute(OLDEST).fetchone() or ("",))[0] == who, who)


def test_a_password_is_asked_for(fleet: Fleet) -> None:
    for name in OURS.keys() - {"simulator"}:
        given = fleet.deployed.environment(name)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(given["DATABASE_URL"], user=given["PGUSER"], password="wrong")  # noqa: S106
    with (
        redis.Redis(host="127.0.0.1", port=fleet.deployed.redis_port) as client,
        pytest.raises(redis.AuthenticationError),
    ):
        client.execute_command("AUTH", "streamer", "wrong")


def test_a_user_may_do_what_is_its_own_and_nobody_may_do_more(fleet: Fleet) -> None:
    stream, password = fleet.world.stream, fleet.deployed.env
    forge = ("XADD", stream, "*", "id", "1")
    users = {"consumers.totals": "TOTALS", "consumers.rollup": "ROLLUP", "watch": "ONLOOKER"}
    users |= {"consumers.receipts": "RECEIPTS", "unified_log.log": "LOG"}
    for user, name in users.items():
        with fleet.deployed.client(user, password[f"{name}_PASSWORD"]) as client:
            for command in (forge, ("DEL", stream), ("ACL", "LIST"), ("CONFIG", "GET", "*")):
                with pytest.raises(redis.exceptions.NoPermissionError):
                    client.execute_command(*command)
    with fleet.deployed.client("streamer", password["STREAMER_PASSWORD"]) as client:
        assert client.xlen(stream) >= 0
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.xadd(f"{stream}-2", {"n": 1})
    nobody = redis.Redis(host="127.0.0.1", port=fleet.deployed.redis_port)
    with nobody:
        assert nobody.ping()  # as the health check does
        with pytest.raises(redis.exceptions.NoPermissionError):
            nobody.xlen(stream)
    assert ADMIN not in (fleet.deployed.folder / "redis.log").read_text()


def test_a_handler_that_has_no_recount_of_its_own_may_start_over(fleet: Fleet) -> None:
    with psycopg.connect(fleet.world.postgres.url) as operator:
        operator.execute("SET ROLE totals")
        operator.execute(START_OVER, {"kind": "ratings", "name": "main"})
        operator.rollback()


def test_rights_can_be_given_again(fleet: Fleet) -> None:
    fleet.deployed.once(fleet.world, "rights")
    given = fleet.deployed.environment("api")
    by_another = fleet.world.service("migrations.rights", **given)
    assert by_another.ends() == 1
    assert "run it as the tables' owner" in by_another.output.read_text()


def test_without_a_password_no_server_starts(
    redis_of_kind: Callable[[str], Redis], tmp_path: Path
) -> None:
    one = Deployed(tmp_path, {"RIDES_PASSWORD": "x", "STREAMER_PASSWORD": "x"})
    with pytest.raises(AssertionError, match="API_PASSWORD: is not set: deploy/secrets"):
        one.make_roles()
    start = [one.local(word) for word in SERVICES["redis"]["entrypoint"]]
    with pytest.raises(AssertionError, match="TOTALS_PASSWORD: is not set: deploy/secrets"):
        one.run([*start, "valkey-server"], one.env)
