"""The API over real HTTP: what is taken, what is refused, and what a lost database does to it."""

import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import httpx
import psutil
import pytest

from api.pool import SESSION, open_pool
from rocket_rides.settings import KEY_LENGTH, load
from tests.world import Service, World, drain, eventually, free_port, transaction


class Api:
    """The API in a process of its own, and a client for it."""

    def __init__(self, world: World, **environment: str) -> None:
        self.port = free_port()
        self.service: Service = world.service("api", API_PORT=str(self.port), **environment)
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=30)
        eventually(self.answers, "an answer of the API")

    def answers(self) -> bool:
        try:
            return self.client.get("/healthz").status_code == 200
        except httpx.TransportError:
            return False

    def post(self, distance: object = "5", **headers: str) -> httpx.Response:
        return self.client.post("/rides", data={"distance": distance}, headers=headers)

    def ready(self) -> bool:
        return self.client.get("/readyz").status_code == 200


@pytest.fixture
def api(world: World) -> Iterator[Api]:
    api = Api(world)
    yield api
    api.client.close()


def is_clear_json(response: httpx.Response, status: int) -> bool:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    return len(response.json()["message"]) > 5


ROUNDED = {
    "539.837": "539.837",
    "1": "1.000",
    "+1.5": "1.500",
    ".5": "0.500",
    "5.": "5.000",
    "1e2": "100.000",
    "0.0005": "0.000",
    "0.0015": "0.002",
    "0.0025": "0.002",
    "0.00251": "0.003",
    "999999999.999": "999999999.999",
    "999999999.9994": "999999999.999",
}


def test_a_ride_is_taken_and_shown(api: Api, world: World) -> None:
    answer = api.post("539.837")
    assert answer.status_code == 201
    assert answer.headers["location"] == "/rides/1"
    assert '"distance":539.837' in answer.text
    assert answer.json() == {
        "message": "Your ride of 539.8 m is booked",
        "ride": {"id": 1, "distance": 539.837},
    }
    shown = api.client.get(answer.headers["location"]).json()["ride"]
    assert (shown["id"], shown["distance"]) == (1, 539.837)

    staged = world.connection.execute("SELECT id, data::text FROM staged_log_records").fetchall()
    assert staged == [(1, '{"id": 1, "distance": 539.837}')]
    drain(world.streamer())
    world.consumer("consumer0").run_once()
    world.consumer("consumer1")
    [ahead, behind] = api.client.get("/consumers").json()["consumers"]
    assert (ahead["name"], ahead["total_distance"], ahead["last_ride_id"]) == (
        "consumer0",
        539.837,
        1,
    )
    assert (ahead["rides_behind"], behind["rides_behind"]) == (0, 1)
    assert ahead["last_redis_id"] != behind["last_redis_id"] == "0-0"


def test_distances_are_rounded_half_even_to_the_millimetre(api: Api, world: World) -> None:
    for given, kept in ROUNDED.items():
        as_form, as_json = (
            api.post(given),
            api.client.post(
                "/rides",
                content=f'{{"distance": {given}}}',
                headers={"Content-Type": "application/json"},
            ),
        )
        if Decimal(kept) == 0:
            assert as_form.status_code == 422
            continue
        assert f'"distance":{kept}}}' in as_form.text
        if as_json.status_code == 201:  # JSON's own grammar is stricter
            assert f'"distance":{kept}}}' in as_json.text
    assert world.value("SELECT count(*) FROM rides WHERE distance = 539.837") == 2


NOT_DISTANCES = """
    -5|0|-0|0.0004|1000000000|999999999.9995|NaN|nan|Infinity|-inf|1e400|1e-400|1e99999999999999999
    0x10|1_000|1,5|five|true|1 000| 5|5 |\u0665|1e|--1|.|+|1.2.3
"""


@pytest.mark.parametrize(
    "given", ["", *NOT_DISTANCES.strip("\n ").replace("\n    ", "|").split("|")]
)
def test_what_is_no_distance_is_refused(api_for_refusals: Api, given: str) -> None:
    assert is_clear_json(api_for_refusals.post(given), 422)


JSON_REFUSED = [
    ("{}", 422),
    ('{"distance": null}', 422),
    ('{"distance": true}', 422),
    ('{"distance": "5"}', 422),
    ('{"distance": [5]}', 422),
    ('{"distance": {"m": 5}}', 422),
    ('{"distance": 5, "distance": 6}', 422),
    ('{"distance": -1}', 422),
    ('{"distance": 1e400}', 422),
    ("[5]", 422),
    ('[["distance", 5]]', 422),
    ("5", 422),
    ('"5"', 422),
    ("null", 422),
    ('{"distance": NaN}', 400),
    ('{"distance": Infinity}', 400),
    ('{"distance": 0x10}', 400),
    ('{"distance": 1_000}', 400),
    ('{"distance": 5', 400),
    ("", 400),
    ("distance=5", 400),
    ('{"distance": ' + "[" * 15_000, 400),
    ('{"distance": ' + "9" * 15_000 + "}", 422),
    (b'{"distance": 5, "who": "\xff"}', 400),
]


@pytest.mark.parametrize(("body", "status"), JSON_REFUSED, ids=lambda part: str(part)[:40])
def test_json_that_is_no_ride_is_refused(
    api_for_refusals: Api, body: str | bytes, status: int
) -> None:
    answer = api_for_refusals.client.post(
        "/rides", content=body, headers={"Content-Type": "application/json"}
    )
    assert is_clear_json(answer, status)


FORMS_REFUSED = {
    "nothing": "",
    "another field": "length=5",
    "nested": "distance[]=5",
    "nested with a key": "distance[m]=5",
    "nested beside it": "distance=5&distance[]=6",
    "repeated": "distance=5&distance=5",
    "not UTF-8": "distance=%ff",
    "a NUL": "distance=5%00",
}


@pytest.mark.parametrize("kind", FORMS_REFUSED)
def test_forms_that_are_no_ride_are_refused(api_for_refusals: Api, kind: str) -> None:
    answer = api_for_refusals.client.post(
        "/rides",
        content=FORMS_REFUSED[kind],
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert is_clear_json(answer, 422)


def test_other_requests_are_refused_in_json_with_the_right_status(api_for_refusals: Api) -> None:
    client = api_for_refusals.client
    typed = {"Content-Type": "text/plain"}
    assert is_clear_json(client.post("/rides", content="distance=5", headers=typed), 415)
    assert is_clear_json(client.post("/rides", content=b"distance=5"), 415)
    assert is_clear_json(client.post("/rides"), 422)
    assert is_clear_json(client.post("/rides?distance=5"), 422)
    assert is_clear_json(client.post("/rides", data={"distance": "5" * 17_000}), 413)
    chunked = client.post(
        "/rides",
        content=iter([b"distance=" + b"5" * 9000, b"5" * 9000]),
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert is_clear_json(chunked, 413)
    for path in ("/", "/ride", "/rides/", "//rides", "/rides/x", "/rides/-1", "/rides/1.0"):
        assert is_clear_json(client.get(path), 404), path
    assert is_clear_json(client.get("/rides/999999999"), 404)
    assert is_clear_json(client.get(f"/rides/{10**30}"), 404)
    for method, path in [("GET", "/rides"), ("DELETE", "/rides/1"), ("POST", "/consumers")]:
        answer = client.request(method, path)
        assert is_clear_json(answer, 405)
        assert answer.headers["allow"]
    assert is_clear_json(client.options("/rides"), 405)
    for key in ("", "a b", "a,b", "é".encode().decode("latin-1"), "x" * (KEY_LENGTH + 1)):
        sent = {"Idempotency-Key": key.encode("latin-1")}
        answer = client.post("/rides", data={"distance": "5"}, headers=sent)  # type: ignore[arg-type]
        assert is_clear_json(answer, 400)


@pytest.mark.parametrize("chunked", [True, False])
def test_half_a_body_takes_no_ride(api: Api, world: World, chunked: bool) -> None:
    """The client breaks off after 'distance=53' of 'distance=539.837'."""
    length = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: 16"
    body = b"b\r\ndistance=53\r\n" if chunked else b"distance=53"
    head = b"POST /rides HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded"
    with socket.create_connection(("127.0.0.1", api.port)) as client:
        client.sendall(head + b"\r\n" + length + b"\r\n\r\n" + body)
    assert api.service.stop() == 0  # it has finished what it had begun
    assert world.truth == (0, 0)


def test_a_chunked_form_is_asked_for_its_length(api: Api) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = api.client.post("/rides", content=iter([b"distance=", b"5"]), headers=form)
    assert is_clear_json(answer, 411)
    as_json = {"Content-Type": "application/json"}
    answer = api.client.post("/rides", content=iter([b'{"distance":', b"5}"]), headers=as_json)
    assert answer.status_code == 201


@pytest.fixture(scope="module")
def api_for_refusals(module_world: World) -> Iterator[Api]:
    """One API for all refusals; at the end not one ride has been taken."""
    api = Api(module_world)
    yield api
    assert api.service.stop() == 0
    assert "Traceback" not in api.service.output.read_text()
    assert module_world.truth == (0, 0)


def test_multipart_forms_are_taken(api: Api) -> None:
    answer = api.client.post("/rides", files={"distance": (None, "7.5")})
    assert answer.json()["ride"]["distance"] == 7.5


def test_one_key_takes_one_ride_however_often_it_is_sent(api: Api, world: World) -> None:
    first, again = (api.post("5.0", **{"Idempotency-Key": "once"}) for _ in range(2))
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    same = ("location", "content-type")
    assert (
        (again.status_code, again.content)
        == (first.status_code, first.content)
        == (201, first.content)
    )
    assert [again.headers[name] for name in same] == [first.headers[name] for name in same]
    assert api.post("5.0001", **{"Idempotency-Key": "once"}).status_code == 201  # the same ride
    assert is_clear_json(api.post("6", **{"Idempotency-Key": "once"}), 422)
    assert world.truth == (1, 5)


def test_twenty_equal_requests_at_once_take_one_ride(api: Api, world: World) -> None:
    for key in ("a", "b", "c"):
        with ThreadPoolExecutor(20) as threads:
            answers = list(
                threads.map(lambda _, k=key: api.post("5", **{"Idempotency-Key": k}), range(20))
            )
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.text for answer in answers}) == 1
        replayed = [answer for answer in answers if "idempotent-replayed" in answer.headers]
        assert len(replayed) == 19
    assert world.value("SELECT count(*) FROM rides") == 3
    assert world.staged() == 3


def test_a_key_whose_first_request_failed_can_be_used_again(api: Api, world: World) -> None:
    with transaction(world) as blocker:
        blocker.execute("LOCK TABLE rides IN SHARE MODE")
        refused = api.post("5", **{"Idempotency-Key": "k"})
        assert is_clear_json(refused, 503)
        assert refused.headers["retry-after"]
    assert api.post("5", **{"Idempotency-Key": "k"}).status_code == 201
    assert world.truth[1] == 5


def test_serialization_failures_are_tried_again(api: Api, world: World) -> None:
    """A trigger fails the first three transactions of each ride, as a conflict would."""
    world.connection.execute("CREATE SEQUENCE attempts")
    world.connection.execute(
        """
        CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('attempts') % 4 <> 0 THEN RAISE SQLSTATE '40001'; END IF;
            RETURN NEW;
        END $$
        """
    )
    world.connection.execute(
        "CREATE TRIGGER conflict BEFORE INSERT ON staged_log_records"
        " FOR EACH ROW EXECUTE FUNCTION conflict()"
    )
    assert api.post("5").status_code == 201
    assert api.post("6", **{"Idempotency-Key": "k"}).status_code == 201
    assert world.value("SELECT last_value FROM attempts") == 8
    assert world.truth[1] == 11

    world.connection.execute("ALTER SEQUENCE attempts INCREMENT 4 RESTART 9")  # now every one fails
    hopeless = api.post("7")
    assert is_clear_json(hopeless, 503)
    assert "not taken" in hopeless.text
    assert hopeless.headers["retry-after"]


def test_a_ride_is_written_in_a_serializable_transaction(api: Api, world: World) -> None:
    world.connection.execute("CREATE TABLE levels (level text)")
    world.connection.execute(
        """
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO levels VALUES (current_setting('transaction_isolation'));
            RETURN NEW;
        END $$
        """
    )
    for table in ("rides", "staged_log_records", "idempotency_keys"):
        world.connection.execute(
            f"CREATE TRIGGER note BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION note()"
        )
    api.post("5")
    api.post("5", **{"Idempotency-Key": "k"})
    rows = world.connection.execute("SELECT level FROM levels").fetchall()
    assert rows == [("serializable",)] * 5


def lose_connections_at_commit(world: World) -> None:
    """Make every ride's session end while it commits."""
    world.connection.execute(
        """
        CREATE FUNCTION vanish() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM pg_terminate_backend(pg_backend_pid());
            PERFORM pg_sleep(10);
            RETURN NEW;
        END $$
        """
    )
    world.connection.execute(
        "CREATE CONSTRAINT TRIGGER vanish AFTER INSERT ON rides DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION vanish()"
    )


def test_a_connection_lost_at_commit_is_told_and_not_tried_again(api: Api, world: World) -> None:
    lose_connections_at_commit(world)
    before = world.value("SELECT last_value FROM log_position")
    answer = api.post("5")
    assert is_clear_json(answer, 503)
    assert "may have been taken" in answer.text
    assert world.value("SELECT last_value FROM log_position") - before <= 1


def test_with_a_key_a_lost_connection_is_tried_again(api: Api, world: World) -> None:
    lose_connections_at_commit(world)
    answer = api.post("5", **{"Idempotency-Key": "k"})
    assert is_clear_json(answer, 503)
    assert world.value("SELECT last_value FROM log_position") > 1
    world.connection.execute("DROP TRIGGER vanish ON rides")
    assert api.post("5", **{"Idempotency-Key": "k"}).status_code == 201
    assert world.truth[1] == 5


def within_two_seconds(request: Callable[[], httpx.Response]) -> httpx.Response:
    """The bound is part of the API's contract; a stuck request would take far longer."""
    start = time.monotonic()
    answer = request()
    assert time.monotonic() - start < 2
    return answer


def test_with_the_database_down_it_answers_503_and_recovers(api: Api, world: World) -> None:
    requests = [
        api.post,
        lambda: api.post("5", **{"Idempotency-Key": "k"}),
        lambda: api.client.get("/consumers"),
        lambda: api.client.get("/readyz"),
    ]
    assert api.ready()
    world.postgres.stop()
    try:
        for request in requests:
            assert is_clear_json(within_two_seconds(request), 503)
        assert api.client.get("/healthz").status_code == 200
    finally:
        world.postgres.start()
    eventually(api.ready)
    assert {api.post("5").status_code for _ in range(20)} == {201}


def test_stale_connections_are_replaced_before_a_ride_needs_them(api: Api, world: World) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: api.post(), range(50)))
    world.postgres.kill()
    world.postgres.start()
    assert {api.post("5").status_code for _ in range(50)} == {201}


def test_the_pools_sessions_are_serializable_and_never_hang(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", world.postgres_url)
    with open_pool(load()) as pool, pool.connection() as connection:
        for name, wanted in SESSION.items():
            assert connection.execute(f"SHOW {name}").fetchone() == (wanted,)
    assert SESSION["idle_in_transaction_session_timeout"] == "2s"


def test_a_lock_on_the_rides_makes_503s_within_two_seconds(api: Api, world: World) -> None:
    with transaction(world) as blocker:
        blocker.execute("LOCK TABLE rides IN SHARE MODE")
        with ThreadPoolExecutor(30) as threads:
            answers = list(threads.map(lambda _: within_two_seconds(api.post), range(30)))
    for answer in answers:
        assert is_clear_json(answer, 503)
        assert answer.json()["message"].endswith("the ride was not taken")
        assert "\n" not in answer.json()["message"]


def test_a_retry_that_fails_does_not_deny_what_the_first_try_may_have_done(
    api: Api, world: World
) -> None:
    lose_connections_at_commit(world)
    world.connection.execute("ALTER DATABASE " + world.stream + " CONNECTION LIMIT 0")
    answer = api.post("5", **{"Idempotency-Key": "k"})
    assert is_clear_json(answer, 503)
    assert answer.json()["message"].endswith("the ride may have been taken")


def test_a_taken_port_and_a_bad_address_are_one_clear_line(api: Api, world: World) -> None:
    for environment in ({"API_PORT": str(api.port)}, {"API_HOST": "192.0.2.1"}):
        second = world.service("api", **environment)
        assert second.process.wait(30) == 1
        [line] = second.output.read_text().splitlines()
        assert line.startswith("can't listen on ")


def test_its_workers_end_with_it(api: Api) -> None:
    workers = psutil.Process(api.service.process.pid).children(recursive=True)
    assert len(workers) >= 2
    api.service.process.kill()
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert alive == []


def test_it_starts_without_a_schema(world: World) -> None:
    world.connection.execute("ALTER TABLE alembic_version RENAME TO away")
    api = Api(world)
    assert is_clear_json(api.client.get("/readyz"), 503)
    world.connection.execute("ALTER TABLE away RENAME TO alembic_version")
    world.connection.execute("UPDATE alembic_version SET version_num = '0000'")
    answer = api.client.get("/readyz")
    assert is_clear_json(answer, 503)
    assert "schema is 0000" in answer.text
    api.client.close()


def test_idle_and_slow_clients_starve_nobody(api: Api) -> None:
    address = ("127.0.0.1", api.port)
    head = b"POST /rides HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n"
    form = b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"
    others = [socket.create_connection(address) for _ in range(90)]
    for other in others[30:60]:
        other.sendall(head)
    for other in others[60:]:
        other.sendall(head + form + b"dist")
    keep_alive = [httpx.Client(base_url=api.client.base_url) for _ in range(20)]
    for client in keep_alive:
        assert client.post("/rides", data={"distance": "5"}).status_code == 201
    assert {within_two_seconds(api.post).status_code for _ in range(50)} == {201}
    for other in others:
        other.close()
    for client in keep_alive:
        client.close()


def test_it_ends_cleanly_on_sigterm_with_clients_connected(api: Api) -> None:
    api.post()
    assert api.service.stop() == 0
    assert "Traceback" not in api.service.output.read_text()


def test_it_listens_on_loopback_unless_told_otherwise(api: Api) -> None:
    listening = [
        line.split()[1]
        for line in open("/proc/net/tcp").read().splitlines()[1:]  # noqa: SIM115
        if line.split()[3] == "0A" and line.split()[1].endswith(f":{api.port:04X}")
    ]
    assert set(listening) == {f"0100007F:{api.port:04X}"}
