"""The live page's server: what it tells, whom it refuses, and how it ends."""

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from threading import Event
from typing import Any

import httpx
import pytest

from lab.ports import free_ports
from tests.support.facts import database, facts
from tests.support.looks import answered, looking, patient
from tests.support.markup import Markup
from tests.support.metrics import AS_PROMETHEUS_ASKS, parsed
from tests.support.page import Served, serving
from tests.support.world import PATIENCE, World, catch_up, eventually
from watch import broadcast, guards
from watch.facts import Facts


@pytest.fixture(scope="module")
def made_up() -> Iterator[Served]:
    """A page of made-up facts."""
    with serving() as served:
        yield served


def test_a_ride_is_seen_and_only_what_changed_is_sent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.send("0.001", "10.500")
    catch_up(world.consumer())
    patient(monkeypatch)
    # A page whose first look takes long shows that nothing is known: so it has looked before.
    with looking(world) as gatherer, serving(partial(answered, gatherer)) as served:
        eventually(lambda: served.watcher.last, "a look")
        with served.ticks() as ticks:
            first = next(ticks)
            assert {"verdict", "totals", "log", "dead"} <= first["parts"].keys()
            assert "10.501" in first["parts"]["totals"]
            assert first["version"]
            world.send("100")
            catch_up(world.consumer())
            later = list[dict[str, Any]]()
            while not later or "110.501" not in later[-1]["parts"].get("totals", ""):
                later.append(next(ticks))
    assert any(tick["flowed"] for tick in later)
    assert any("records" in tick["parts"].get("post", "") for tick in later)
    assert not later[-1]["version"]
    assert "reconciliations" not in later[-1]["parts"]


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8001", "localhost", "[::1]:80", "127.9.9.9", "LOCALHOST:1"]
)
def test_this_machine_has_these_names(host: str) -> None:
    assert guards.is_local(host)


@pytest.mark.parametrize(
    "host",
    ["", "example.com", "127.0.0.1.nip.io", "localhost.evil", "10.0.0.1", "::1", "a@localhost"],
)
def test_whoever_asks_by_any_other_name_reads_nothing(host: str, made_up: Served) -> None:
    """As under a name that was bound anew to this machine."""
    assert not guards.is_local(host)
    for path in ("/", "/events", "/metrics", "/status.json"):
        with made_up.client.stream("GET", path, headers={"Host": host}) as answer:
            assert answer.status_code in (400, 421)
            assert len(answer.read()) < 200


def test_bound_to_another_address_it_answers_any_host_and_changes_nothing() -> None:
    with serving(run=print, watch_host="0.0.0.0") as served:  # noqa: S104
        assert served.client.get("/", headers={"Host": "fleet.example"}).status_code == 200
        assert not {"button", "input"} & Markup(served.html).names
        assert served.press("stop-redis").status_code == 404


def test_routes_answer_head_and_refuse_other_methods_in_plain_text(made_up: Served) -> None:
    head = made_up.client.head("/")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["cache-control"] == "no-store"
    for coding in ("gzip", "identity"):
        page = made_up.client.get("/", headers={"Accept-Encoding": coding})
        assert page.headers.get("content-encoding", "identity") == coding
        assert "All is well" in page.text
    for method, path, status in (
        ("GET", "/nowhere", 404),
        ("POST", "/", 405),
        ("HEAD", "/events", 405),
        ("GET", "/break", 404),
    ):
        answer = made_up.client.request(method, path)
        assert (answer.status_code, path) == (status, path)
        assert answer.headers["content-type"].startswith("text/plain")
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert made_up.client.get("/healthz").text == "ok\n"
    assert b"<svg" in made_up.client.get("/icon.svg").content
    metrics = made_up.client.get("/metrics", headers={"Accept": AS_PROMETHEUS_ASKS})
    assert parsed(metrics.text, AS_PROMETHEUS_ASKS)


def test_everyone_is_sent_the_same_rendering(
    made_up: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = made_up.site.broadcast._page
    rendered: list[int] = []
    render = page.render

    def counted(*given: object) -> object:
        rendered.append(made_up.watcher.looks)
        return render(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(page, "render", counted)
    with made_up.ticks() as one, made_up.ticks() as other:
        known = [(next(ticks)["parts"], ticks) for ticks in (one, other)]

        def show_the_same() -> bool:
            """At once, unless one of them began a look later and a part has changed in it."""
            for parts, ticks in known:
                parts.update(next(ticks)["parts"])
            return bool(known[0][0] == known[1][0])

        for _ in range(2):
            eventually(show_the_same, "the same parts")
        made_up.client.get("/")
    assert len(rendered) == len(set(rendered)) >= 2


def test_who_has_missed_a_rendering_is_sent_all_parts(made_up: Served) -> None:
    with made_up.ticks() as ticks:
        parts = next(ticks)["parts"]
        for _ in range(2):  # renderings of which this onlooker missed none
            next(ticks)
        missed = made_up.site.broadcast._event_after(0).partition(b"data: ")[2]
        assert json.loads(missed)["parts"].keys() == parts.keys()


def test_who_finds_no_room_is_told_to_come_again(
    made_up: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcast, "MOST_STREAMS", 1)
    eventually(lambda: not made_up.site.broadcast.streams)
    with made_up.ticks() as ticks:
        next(ticks)
        answer = made_up.client.get("/events")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
    eventually(lambda: not made_up.site.broadcast.streams)
    with made_up.ticks() as ticks:
        assert next(ticks)["parts"]


def test_who_does_not_read_is_cut_off(made_up: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Although the others are sent everything meanwhile."""
    monkeypatch.setattr(broadcast, "WRITE_TIME", 0.3)
    monkeypatch.setattr(broadcast, "BUFFER", 1)
    begun, send = Event(), made_up.site.broadcast._send

    async def noted(*given: Any) -> None:
        begun.set()
        await send(*given)

    monkeypatch.setattr(made_up.site.broadcast, "_send", noted)
    eventually(lambda: not made_up.site.broadcast.streams)
    with socket.socket() as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        silent.connect(("127.0.0.1", made_up.port))
        silent.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert begun.wait(PATIENCE)
        eventually(lambda: made_up.site.broadcast.streams == 0, "the end of who never reads")
    assert made_up.client.get("/").status_code == 200


def test_rides_move_on_to_the_log_only_when_they_are_sent() -> None:
    looks, sends = count(), Event()

    def look() -> Facts:
        number = next(looks)
        rides = replace(database().rides, taken=number, sent=number if sends.is_set() else 0)
        return facts(number, rides=rides)

    with serving(look) as served, served.ticks() as ticks:
        changes = ((tick["flowed"], tick["sent"]) for tick in ticks if not tick["version"])
        assert next(changes) == (True, False)
        sends.set()
        # Some may have been sent before.
        eventually(lambda: next(changes) == (True, True), "rides that are sent")


def test_through_a_proxy_one_can_look_and_nothing_more() -> None:
    """Whatever it is that marks the request."""
    with serving(run=print) as served:

        def told(**mark: str) -> str:
            """All that a person is sent who asks with this header."""
            with served.events(**mark) as events:
                return served.client.get("/", headers=mark).text + next(events)

        token = served.site.scene.token
        assert told().count(token) == 2
        for name in ("Forwarded", "X-Forwarded-For", "x-forwarded-proto", "X-Real-IP", "Via"):
            mark = {name: "for=203.0.113.9"}
            assert "All is well" in told(**mark)
            assert "Stop Redis" not in told(**mark)
            assert token not in told(**mark)
            form = {"token": token, "way": "stop-redis"}
            answer = served.client.post("/break", data=form, headers={**served.browser, **mark})
            assert (answer.status_code, "proxy" in answer.text) == (403, True)
        assert not served.site.scene.breakage.way


def test_the_process_ends_although_streams_are_open(world: World) -> None:
    port = free_ports()
    service = world.service("watch", WATCH_PORT=str(port)).says("Listening")
    with httpx.stream("GET", f"http://127.0.0.1:{port}/events", timeout=PATIENCE) as events:
        assert next(events.iter_lines())
        assert service.stop() == 0
    assert service.output.read_text() == f"Listening on http://127.0.0.1:{port}\n"


def test_a_taken_port_is_one_clear_line(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        second = world.service("watch", WATCH_PORT=str(port))
        assert second.ends() == 1
    assert second.output.read_text() == (
        f"can't listen on 127.0.0.1 port {port}: Address already in use;"
        " WATCH_HOST and WATCH_PORT choose another address\n"
    )
