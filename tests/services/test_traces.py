"""A trace that a client began goes with its record: outbox, log, receipt, and the log lines."""

import json
import logging
from decimal import Decimal
from typing import Any

import pytest

from api import booking
from lab.ports import free_ports
from tests.support.api import Api
from tests.support.engine import opened
from tests.support.receipts import SOON, Staff
from tests.support.world import World, drain, eventually
from unified_log.tracing import Trace, parse

PARENT, STATE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "rojo=1,congo=t61"
TRACE = Trace(PARENT, STATE)
HEADERS = {"traceparent": PARENT, "tracestate": STATE}


def traces(world: World) -> list[Trace | None]:
    """Those of the log's records, in order."""
    return [record.trace for record in world.records()]


@pytest.mark.proves("trace")
def test_a_ride_and_its_receipt_are_of_the_trace_that_the_client_began(
    staff: Staff, caplog: pytest.LogCaptureFixture
) -> None:
    """So is a rating. The receiver gets a span of its own; without a well-formed trace, none."""
    caplog.set_level(logging.INFO)
    world = staff.world
    api = Api(world)
    traced = api.post("1", **HEADERS).json()["ride"]["id"]
    plain = api.post("2").json()["ride"]["id"]
    malformed = api.post("3", traceparent="00-1-2-3", tracestate=STATE).json()["ride"]["id"]
    under_key = api.post("4", **HEADERS, **{"Idempotency-Key": "k"}).json()["ride"]["id"]
    drain(world.streamer())
    assert traces(world) == [TRACE, None, None, TRACE]
    rated = api.client.post(f"/rides/{plain}/rating", data={"stars": 4}, headers=HEADERS)
    assert rated.is_success
    drain(world.streamer())
    assert traces(world)[4:] == [TRACE]

    worker = staff.worker()
    worker.until(lambda: staff.outcomes() == 4)
    worker.delivery.outcomes.tell(last=True)
    assert {getattr(line, "trace_id", None) for line in caplog.records} == {None, TRACE.id}
    for ride in (traced, under_key):
        [request] = staff.receiver.of(ride)
        told = parse(request.headers["traceparent"], request.headers["tracestate"])
        assert told is not None
        assert (told.id, told.state) == (TRACE.id, STATE)
        assert told.parent != PARENT
    for ride in (plain, malformed):
        [request] = staff.receiver.of(ride)
        assert not {"traceparent", "tracestate"} & request.headers.keys()


def send_traced(world: World) -> None:
    with opened(world) as database:
        booking.take(database, Decimal(1), None, TRACE)
    drain(world.streamer())


def test_an_attempt_that_is_made_again_is_another_span_of_the_trace(staff: Staff) -> None:
    send_traced(staff.world)
    worker = staff.worker()
    worker.until(lambda: staff.outcomes() == 1)
    staff.world.connection.execute(
        "UPDATE receipts SET outcome = NULL, decided_at = NULL, due_at = now()"
    )
    worker.until(lambda: len(staff.receiver.requests) == 2)
    spans = {request.headers["traceparent"] for request in staff.receiver.requests}
    assert len(spans) == 2
    assert {span[3:35] for span in spans} == {TRACE.id}


def test_a_ride_that_the_log_has_lost_has_a_receipt_without_a_trace(staff: Staff) -> None:
    send_traced(staff.world)
    staff.world.log().start_anew()
    worker = staff.worker("one", **SOON)
    worker.until(lambda: staff.outcomes() == 1)
    assert "traceparent" not in staff.receiver.requests[0].headers


def test_every_process_writes_objects_which_name_what_they_are_about(staff: Staff) -> None:
    """Also while a server is away, and when it ends."""
    world, json_logs = staff.world, {"LOG_FORMAT": "json", "LOG_LEVEL": "DEBUG"}
    api = Api(world, **json_logs)
    services = {
        "api": api.service,
        "streamer": world.service("streamer", **json_logs),
        "consumers.totals": world.service("consumers.totals", "main", **json_logs),
        "consumers.ratings": world.service("consumers.ratings", "main", **json_logs),
        "consumers.rollup": world.service("consumers.rollup", **json_logs),
        "consumers.receipts": staff.service("main", **json_logs),
        "watch": world.service("watch", WATCH_PORT=str(free_ports()), **json_logs),
    }
    ride = api.post("1", **HEADERS).json()["ride"]["id"]
    eventually(lambda: staff.outcomes() == 1, "the receipt")
    services["consumers.rollup"].says(" marked, ")
    world.log().redis.xadd(world.stream, dict.fromkeys(("data", *HEADERS), PARENT))
    services["consumers.totals"].says("malformed entry")
    world.postgres.stop()
    assert api.post("2", **HEADERS).status_code == 503
    eventually(lambda: services["consumers.totals"].said("can't be reached"), "the outage")
    world.postgres.start()
    about: dict[str, list[dict[str, Any]]] = {}
    for name, service in services.items():
        assert service.stop() == 0
        about[name] = [json.loads(line) for line in service.output.read_text().splitlines()]
        assert {event["process"] for event in about[name]} == {name}
        assert all(event.keys() >= {"time", "level", "logger", "message"} for event in about[name])
    [taken] = [event for event in about["api"] if event.get("ride_id") == ride]
    [refused] = [event for event in about["api"] if "answers 503" in event["message"]]
    [aside] = [
        event for event in about["consumers.totals"] if "malformed entry" in event["message"]
    ]
    assert {event["trace_id"] for event in (taken, refused, aside)} == {TRACE.id}
    for name in ("streamer", "consumers.totals", "consumers.rollup", "consumers.receipts"):
        assert TRACE.id in {event.get("trace_id") for event in about[name]}, name
    for name in ("consumers.totals", "consumers.receipts"):
        assert {event["consumer"] for event in about[name]} == {"main"}
