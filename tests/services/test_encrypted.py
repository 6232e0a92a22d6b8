"""A whole fleet over TLS, with passwords, and with no more rights than docs/production.md names."""

from collections.abc import Iterator

import httpx
import psycopg
import pytest
import redis

from lab.ports import free_ports
from tests.support.api import Api
from tests.support.looks import look, probed
from tests.support.metrics import Series, series
from tests.support.receipts import Staff
from tests.support.receiver import Receiver
from tests.support.rollup import is_complete
from tests.support.secure import Secure, let_in
from tests.support.world import PATIENCE, World, eventually
from unified_log import database
from unified_log.errors import Unavailable
from unified_log.log import Log

STREAM = "rocket-rides-log"
# What the role has beside its schema.
MORE = """
    SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls,
           datdba = pg_roles.oid,
           has_database_privilege(rolname, datname, 'CREATE, TEMPORARY'),
           has_schema_privilege(rolname, 'public', 'CREATE'),
           EXISTS (SELECT FROM pg_class WHERE relowner = pg_roles.oid
                   AND relnamespace NOT IN ('rides'::regnamespace, 'pg_toast'::regnamespace))
    FROM pg_roles, pg_database WHERE rolname = 'rides' AND datname = current_database()
"""
ENCRYPTED = """
    SELECT usename, application_name, ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
    WHERE backend_type = 'client backend' AND usename <> 'postgres'
"""
SEEN = "SELECT state IS NOT NULL FROM pg_stat_activity WHERE application_name = 'rollup'"
MAY_WRITE = """
    SELECT count(*) FROM pg_tables, unnest(ARRAY['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE']) may
    WHERE schemaname = 'rides' AND
          has_table_privilege('onlooker', 'rides.' || tablename, may)
"""
CHANGING = (
    "age_seconds",
    "lag_seconds",
    "latency_seconds",
    "gathering_seconds",
    "timestamp_seconds",
)
ATTEMPTS = 3
AT_WORK = {"streamer", "rollup", "reader total consumer0", "receipts one", "api", "watch"}


def looked(world: World, role: str, user: str) -> Series:
    """What the metrics tell a role, but for what changes all the time."""
    told = series(look(world, database_url=role, redis_url=user))
    return {key: known for key, known in told.items() if not key[0].endswith(CHANGING)}


@pytest.fixture(scope="module")
def world(secure: Secure, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """In the schema of its own; what the test itself asks, it asks as the same role."""
    with redis.Redis.from_url(secure.redis.url) as control:
        let_in(control, "rides", STREAM)
    folder = tmp_path_factory.mktemp("encrypted")
    world = World(secure.postgres, secure.redis, secure.postgres_url(), STREAM, folder)
    with world.exits:
        yield world


@pytest.fixture(scope="module")
def fleet(world: World, secure: Secure) -> Iterator[Api]:
    """All of it, and its API."""
    as_user = {"REDIS_URL": secure.redis_url()}
    migrations = world.service("migrations", **as_user)
    assert migrations.ends() == 0, migrations.output.read_text()
    world.service("streamer", **as_user)
    world.service("consumers.totals", "consumer0", **as_user)
    world.service("consumers.rollup", **as_user)
    with Receiver() as receiver:
        Staff(world, receiver).service("one", **as_user)
        api = Api(world, **as_user)
        yield api
        api.client.close()


@pytest.fixture(scope="module")
def page(world: World, fleet: Api, secure: Secure) -> str:
    """The live page's address; it only reads."""
    port = free_ports()
    role = {"DATABASE_URL": secure.postgres_url("onlooker"), "REDIS_URL": secure.redis_url()}
    world.service("watch", WATCH_PORT=str(port), **role).says("Listening")
    return f"http://127.0.0.1:{port}"


def test_rides_reach_all_totals_and_every_session_is_encrypted(
    fleet: Api, world: World, page: str
) -> None:
    assert {fleet.post(distance).status_code for distance in ("1.001", "2.002")} == {201}
    eventually(lambda: world.standing() == world.truth and is_complete(world))
    eventually(lambda: world.value("SELECT count(*) FROM receipts WHERE outcome = 'delivered'") > 1)
    assert fleet.ready()
    assert httpx.get(f"{page}/metrics", timeout=PATIENCE).status_code == 200
    with psycopg.connect(world.postgres.url) as operator:
        sessions = operator.execute(ENCRYPTED).fetchall()
    assert {name.partition(" (")[0] for _, name, _ in sessions} >= AT_WORK
    assert {encrypted for _, _, encrypted in sessions} == {True}
    said = world.postgres.log.read_text()
    assert "method=scram-sha-256" in said
    assert said.count("connection authenticated:") == said.count("method=scram-sha-256")


def test_the_owner_of_a_schema_owns_and_needs_nothing_else(fleet: Api, world: World) -> None:
    with psycopg.connect(world.postgres.url) as operator:
        assert operator.execute(MORE).fetchall() == [(False,) * 5]


def test_whoever_may_only_read_is_shown_the_same(
    fleet: Api, world: World, secure: Secure, page: str
) -> None:
    role, user = secure.postgres_url("onlooker"), secure.redis_url()
    status, told = probed(world, DATABASE_URL=role, REDIS_URL=user)
    assert status == 0, told
    assert looked(world, role, user) == looked(world, world.postgres_url, user)
    with psycopg.connect(world.postgres.url) as operator:
        assert operator.execute(MAY_WRITE).fetchone() == (0,)
    with psycopg.connect(role) as onlooker:
        assert onlooker.execute(SEEN).fetchone() == (True,)


def test_a_server_of_another_name_is_refused(world: World, secure: Secure) -> None:
    address = secure.postgres.settings["listen_addresses"]
    elsewhere = f"{world.postgres_url.replace(address, 'db.example')}&hostaddr={address}"
    with pytest.raises(Unavailable, match=r'does not match host name "db\.example"'):
        database.connect(elsewhere, "test")
    with pytest.raises(redis.ConnectionError, match=r"^Redis: .*not valid for 'localhost'"):
        Log(secure.redis_url().replace("127.0.0.1", "localhost"), STREAM)


def test_a_process_says_once_which_certificate_it_does_not_trust(
    world: World, secure: Secure
) -> None:
    wrong = {"DATABASE_URL": secure.postgres_url(authority=secure.other)}
    streamer = world.service("streamer", **wrong)
    eventually(lambda: secure.postgres.log.read_text().count("alert unknown ca") > ATTEMPTS)
    streamer.stop()
    said = streamer.output.read_text()
    assert 1 <= said.count("certificate verify failed") <= 2  # and again when it lasts
    assert "Traceback" not in said
