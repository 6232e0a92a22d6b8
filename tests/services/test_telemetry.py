"""Telemetry: one ride is one trace, the metrics arrive, and no collector holds anything up."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from lab.ports import free_ports
from tests.support import plain_http
from tests.support.api import Api
from tests.support.collector import Collector, Span
from tests.support.metrics import TEXT, Series, parsed
from tests.support.receipts import Staff
from tests.support.receiver import ACCEPT, ENDLESS, GARBAGE, HANG, Answer
from tests.support.world import World, eventually
from unified_log.tracing import parse

CLIENTS = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


def one(collector: Collector, service: str, name: str) -> Span:
    """The first span of that name."""
    return eventually(lambda: collector.spans(service, name), f"{name} of {service}")[0]


def test_a_ride_is_one_trace_from_its_post_to_its_webhook(
    staff: Staff, collector: Collector
) -> None:
    """Whether or not the client began it. Streamer and readers have batches: they link to it."""
    world, settings = staff.world, collector.settings
    staff.service(**settings).says("delivers receipts")
    world.service("consumers.totals", "consumer0", **settings).says("stands at")
    world.service("streamer", **settings).says("leading")
    api = Api(world, **settings)
    for clients in (CLIENTS, None):
        headers = {"traceparent": clients, "tracestate": "vendor=x"} if clients else {}
        assert api.post(**headers).status_code == 201
        [webhook] = eventually(lambda: staff.receiver.requests, "a receipt")

        post = one(collector, "-api", "POST /rides")
        statement = one(collector, "-api", "WITH")
        attempt = one(collector, "-receipts", "POST")
        inbox = one(collector, "-receipts", "process")
        sent = one(collector, "-streamer", "send")
        counted = one(collector, "-consumer", "process")

        begun = parse(clients)
        assert (post.kind, post.parent) == ("server", begun.parent[36:52] if begun else "")
        assert begun is None or begun.id == post.trace
        assert {"http.route": "/rides", "http.response.status_code": 201}.items() <= (
            post.attributes.items()
        )
        assert statement.kind == "client"
        assert (statement.trace, statement.parent) == (post.trace, post.id)
        assert statement.attributes["db.system.name"] == "postgresql"
        assert "INSERT INTO rides" in str(statement.attributes["db.query.text"])
        assert (attempt.kind, attempt.trace, attempt.parent) == ("client", post.trace, post.id)
        assert attempt.attributes["http.response.status_code"] == 204
        assert webhook.headers["traceparent"].startswith(f"00-{post.trace}-{attempt.id}-")
        assert webhook.headers.get("tracestate") == headers.get("tracestate")
        for batch, kind in ((sent, "producer"), (inbox, "consumer"), (counted, "consumer")):
            assert batch.kind == kind
            assert batch.links == [(post.trace, post.id)]
            assert batch.trace != post.trace
            assert batch.attributes["messaging.batch.message_count"] == 1
            assert batch.attributes["messaging.destination.name"] == world.stream
        assert not any(span.failed for span in collector.spans())
        for seen in (collector, staff.receiver):
            seen.requests.clear()
    api.client.close()


def test_failures_are_told_without_what_is_secret(staff: Staff, collector: Collector) -> None:
    """No password, token or row: neither of a URL nor in an error's text, by either conventions."""
    both = {"OTEL_SEMCONV_STABILITY_OPT_IN": "http/dup,database/dup"}
    settings = collector.settings | both
    staff.receiver.behaviour = GARBAGE
    url = f"{staff.receiver.url}?token=secret"
    staff.service(RECEIPT_URL=url, **settings).says("delivers receipts")
    staff.world.send(1)
    attempt = one(collector, "-receipts", "POST")
    assert attempt.failed
    assert attempt.attributes["url.full"] == staff.receiver.url
    assert attempt.attributes["error.type"] == "ClientResponseError"

    api = Api(staff.world, **settings)
    staff.world.connection.execute("ALTER TABLE rides ADD CHECK (distance < 10)")
    assert api.post("11").status_code == 503
    post, statement = one(collector, "-api", "POST"), one(collector, "-api", "WITH")
    assert post.failed
    assert post.attributes["error.type"] == "503"
    assert statement.failed
    assert statement.attributes["db.response.status_code"] == "23514"
    assert api.client.get("/nowhere").status_code == 404
    api.client.get("/hours?password=secret")
    api.client.get("/days?password=secret", headers={"Host": "me:secret@host"})
    missed = eventually(lambda: collector.spans("-api", "GET"))[0]
    assert (post.attributes["url.path"], missed.attributes["url.path"]) == ("/rides", "/nowhere")
    one(collector, "-api", "GET /hours")
    assert one(collector, "-api", "GET /days").attributes["server.address"] == "host"
    # Postgres shows the row, as "Failing row contains (...)".
    told = [request.body for request in collector.requests]
    assert not any(b"secret" in body or b"Failing row" in body for body in told)
    api.client.close()


# What a client may send, and how that is answered where nothing is exported.
HOSTILE = {
    "a bad trace twice": ([("traceparent", CLIENTS)] * 2, 201),
    "a bad state": ([("traceparent", CLIENTS), ("tracestate", "===,;")], 201),
    "bad baggage": ([("baggage", "nothing")], 201),
    "a bad host": ([("Host", "[x")], 400),
    "a bad agent": ([("User-Agent", "\xff")], 201),
}


def test_what_a_client_sends_changes_no_answer_and_is_no_loss(
    world: World, collector: Collector
) -> None:
    """Whoever read of a loss would look for a collector."""
    api = Api(world, **collector.settings)
    for what, (sent, status) in HOSTILE.items():
        headers = [(name.encode(), value.encode("latin-1")) for name, value in sent]
        answer = api.client.post("/rides", data={"distance": "5"}, headers=headers)
        assert answer.status_code == status, what
    eventually(lambda: len(collector.spans("-api", "POST /rides")) == len(HOSTILE))
    assert api.service.stop() == 0
    assert "are lost" not in api.service.output.read_text()
    api.client.close()


WAYS = {
    "away": None,
    "silent": HANG,
    "endless": ENDLESS,
    "later": Answer(503, {"Retry-After": "3600"}),
    "elsewhere": Answer(307, {"Location": "http://127.0.0.1:1/"}),
}


def test_a_collector_that_is_bad_holds_up_nothing(world: World) -> None:
    """Rides are taken and counted, processes end in time, and a line says what is lost."""
    with ExitStack() as collectors:
        bad = {way: collectors.enter_context(Collector()) for way in WAYS}
        for way, behaviour in WAYS.items():
            bad[way].behaviour = behaviour or ACCEPT
        bad["away"].goes_away()
        streamer = world.service("streamer", **bad["away"].settings).says("leading")
        api = Api(world, **bad["silent"].settings)
        totals = {
            way: world.service("consumers.totals", way, **each.settings).says("stands at")
            for way, each in bad.items()
        }
        posted = time.monotonic()
        assert {api.post().status_code for _ in range(20)} == {201}
        assert time.monotonic() - posted < 10
        eventually(lambda: {*map(world.standing, WAYS)} == {world.truth}, "all rides in each total")
        lost = "spans and metrics are lost"
        for way in ("away", "later", "elsewhere"):
            totals[way].says(lost)
        streamer.says(lost)
        for service in (api.service, *totals.values()):
            asked = time.monotonic()
            service.stop()
            assert time.monotonic() - asked < 5
            said = service.output.read_text()
            assert "Traceback" not in said
            assert said.count("are lost") <= 1
        bad["away"].comes_back()
        eventually(lambda: world.take(1) and streamer.said("exported again"))
        api.client.close()


def test_no_proxy_gets_what_a_collector_a_receiver_or_the_api_is_sent(
    staff: Staff, collector: Collector
) -> None:
    """Nor by a simulator: each is asked where its setting says."""
    nobody = f"http://127.0.0.1:{free_ports()}"
    names = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
    given, world = collector.settings | dict.fromkeys(names, nobody), staff.world
    world.service("streamer", **given).says("leading")
    staff.service(**given).says("delivers receipts")
    api = Api(world, **given)
    customer = given | {"API_URL": f"http://127.0.0.1:{api.port}"}
    world.service("demo.simulator", "--no-receipts", "--rate", "20", **customer)
    eventually(lambda: staff.outcomes() > 1, "the receipts of the simulator's rides")
    one(collector, "-streamer", "send")
    api.client.close()


def test_what_is_left_at_the_end_of_a_process_is_exported(
    staff: Staff, collector: Collector
) -> None:
    """Of the API's workers, too, which are forked, and of those that end at once.

    A probe has no span, nor has its statement, and a replay has not failed.
    """
    world = staff.world
    settings = collector.settings | {"OTEL_BSP_SCHEDULE_DELAY": "600000"}
    services = [
        world.service("streamer", **settings).says("leading"),
        staff.service(**settings).says("delivers receipts"),
    ]
    api = Api(world, **settings)
    eventually(api.ready)
    first, again = (api.post(**{"Idempotency-Key": "k"}) for _ in range(2))
    assert (first.status_code, again.headers["Idempotent-Replayed"]) == (201, "true")
    eventually(lambda: staff.outcomes() == 1)
    for service in (*services, api.service):
        service.stop()
    assert {span.service for span in collector.spans()} == {
        "rocket-rides-streamer",
        "rocket-rides-receipts",
        "rocket-rides-api",
    }
    database = world.connection.info.dbname
    assert Counter(span.name for span in collector.spans("-api")) == {
        "POST /rides": 2,
        f"WITH {database}": 2,
        f"SELECT {database}": 1,
    }
    assert not any(span.failed for span in collector.spans())
    api.client.close()


def test_the_metrics_that_arrive_are_those_that_the_page_shows(
    world: World, collector: Collector
) -> None:
    world.send(1, 2)
    world.consumer().run_once()
    port = free_ports()
    watch = world.service("watch", WATCH_PORT=str(port), **collector.settings).says("Listening")

    def shown() -> Series:
        return settled(parsed(page.get("/metrics", headers={"Accept": TEXT}).text, TEXT))

    with plain_http.client(port) as page:
        eventually(
            lambda: len(shown()) > 30 and settled(collector.metrics()) == shown(),
            "the same metrics",
        )
    assert watch.stop() == 0


def settled(series: Series) -> Series:
    """Without what no two looks have alike."""
    moving = ("_seconds", "_bytes")
    return {key: value for key, value in series.items() if not key[0].endswith(moving)}
