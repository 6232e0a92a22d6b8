"""The live page's server: what it tells, whom it refuses, and how it ends."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

import breaking
from breaking import Claim, NotHealed, Printed
from breaking.attempt import alone
from rocket_rides.errors import Unavailable
from rocket_rides.settings import Settings
from tests.support.facts import AWAY, counts, database, dead_receipt, facts, receipts, total
from tests.support.page import Markup, Page, parsed
from tests.support.site import Served, gathering, of_world, serving
from tests.support.world import PATIENCE, World, catch_up, drain, eventually, free_port
from watch import broadcast, guards, server
from watch.__main__ import listen
from watch.demolition import Demolition, in_the_demo
from watch.facts import Facts
from watch.watching import SEEN, Watcher

STOP_REDIS = SimpleNamespace(
    label="Stop Redis", summary="Shut Redis down", meanwhile="Redis is stopped"
)
DEAD = """
    INSERT INTO receipts (ride_id, outcome, decided_at, dead_at, attempts, reason, first_at, due_at)
    VALUES (%s, 'dead', now(), now(), 1, 'status 422: never', now(), now())
"""


@pytest.fixture
def live(world: World) -> Iterator[Served]:
    """The page of a world in which a consumer has counted two rides."""
    world.take("0.001", "10.500")
    drain(world.streamer())
    catch_up(world.consumer())
    config = of_world(world)
    with gathering(config) as gather, serving(config, gather) as served:
        yield served


@pytest.fixture(scope="module")
def made_up() -> Iterator[Served]:
    """A page of made-up facts."""
    with serving(Settings(watch_port=free_port()), facts) as served:
        yield served


def test_a_ride_is_seen_within_a_second_or_so_and_only_what_changed_is_sent(
    live: Served, world: World
) -> None:
    with live.ticks() as ticks:
        first = next(ticks)
        assert {"verdict", "totals", "log", "dead-0"} <= first["parts"].keys()
        assert "10.501" in first["parts"]["totals"]
        assert first["version"]
        world.take("100")
        drain(world.streamer())
        taken = time.monotonic()
        catch_up(world.consumer())
        tick = next(tick for tick in ticks if "110.501" in tick["parts"].get("totals", ""))
        assert time.monotonic() - taken < 2 * SEEN
        assert tick["flowed"]
        assert not tick["version"]
        assert "rides" in tick["parts"]["post"]
        assert "reconciliations" not in tick["parts"]


def test_the_page_goes_on_while_a_server_is_away(world: World) -> None:
    """And says which; and tells, in its feed, when it was back."""
    config = of_world(world)
    with gathering(config) as gather:
        down = threading.Event()

        def look() -> Facts:
            seen = gather()
            return replace(seen, redis=AWAY, log=None) if down.is_set() else seen

        with serving(config, look) as served, served.ticks() as ticks:
            assert 'class="up">Redis' in next(ticks)["parts"]["servers"]
            down.set()
            tick = next(tick for tick in ticks if "servers" in tick["parts"])
            assert 'class="down">Redis away' in tick["parts"]["servers"]
            assert '<h1 class="bad">Redis' in tick["parts"]["verdict"]
            assert served.client.get("/").status_code == 200
            down.clear()
            tick = next(tick for tick in ticks if "servers" in tick["parts"])
            assert [item for _, item, _ in tick["feed"] if "Redis is back" in item]


def test_a_dead_receipt_is_replayed_once(live: Served, world: World) -> None:
    world.connection.execute(DEAD, [1])
    answer = live.post("/replay", ride="1")
    assert (answer.status_code, answer.headers["location"]) == (303, "/#h-dead")
    assert world.value("SELECT count(*) FROM receipts WHERE replay_at IS NOT NULL") == 1
    again = live.post("/replay", ride="1")
    assert again.status_code == 409
    assert "it is being sent again already" in again.text
    assert live.post("/replay", ride="2").text.endswith("there was no attempt to deliver it\n")
    for nonsense in ("", "0", "-1", "1.5", "9" * 30, "²"):
        assert live.post("/replay", ride=nonsense).status_code == 400
    said = [event.words for _, event in live.watcher.feed.newest()]
    assert "the receipt of ride 1 is to be sent again" in said


def test_a_replay_says_so_when_postgres_is_away(made_up: Served, tmp_path: object) -> None:
    object.__setattr__(made_up.config, "data_dir", tmp_path)
    answer = made_up.post("/replay", ride="1")
    assert answer.status_code == 409
    assert "Postgres can't be reached" in answer.text


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8001", "localhost", "[::1]:80", "127.9.9.9", "LOCALHOST:1"]
)
def test_this_machine_has_these_names(host: str) -> None:
    assert guards.is_local(host)


@pytest.mark.parametrize(
    "host",
    ["", "example.com", "127.0.0.1.nip.io", "localhost.evil", "10.0.0.1", "::1", "a@localhost"],
)
def test_any_other_name_is_refused(host: str, made_up: Served) -> None:
    assert not guards.is_local(host)
    answer = made_up.client.get("/", headers={"Host": host})
    assert answer.status_code in (400, 421)
    assert "All is well" not in answer.text


def test_bound_to_another_address_it_answers_any_host_and_changes_nothing() -> None:
    config = Settings(watch_port=free_port(), watch_host="0.0.0.0")  # noqa: S104
    button = Demolition(
        config, {"freeze": SimpleNamespace(label="", summary="", meanwhile="")}, print
    )
    with serving(config, facts, button) as served:
        assert served.client.get("/", headers={"Host": "fleet.example"}).status_code == 200
        assert served.fields() == []
        assert served.post("/replay", ride="1").status_code == 403
        assert served.post("/break", way="freeze").status_code == 404


def test_routes_answer_head_and_refuse_other_methods_in_plain_text(made_up: Served) -> None:
    head = made_up.client.head("/")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["cache-control"] == "no-store"
    for method, path, status in (
        ("GET", "/nowhere", 404),
        ("POST", "/", 405),
        ("HEAD", "/events", 405),
        ("GET", "/replay", 405),
        ("GET", "/break", 404),
    ):
        answer = made_up.client.request(method, path)
        assert (answer.status_code, path) == (status, path)
        assert answer.headers["content-type"].startswith("text/plain")
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert made_up.client.get("/healthz").text == "ok\n"
    assert b"<svg" in made_up.client.get("/icon.svg").content


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
        assert next(one)["parts"] == next(other)["parts"]
        for _ in range(2):
            assert next(one) == next(other)
        made_up.client.get("/")
    assert len(rendered) == len(set(rendered)) >= 2


def test_who_finds_no_room_is_told_to_come_again(
    made_up: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_STREAMS", 1)
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
    eventually(lambda: not made_up.site.broadcast.streams)
    with socket.socket() as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        silent.connect(("127.0.0.1", made_up.config.page_port))
        silent.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        eventually(lambda: made_up.site.broadcast.streams == 1)
        eventually(lambda: made_up.site.broadcast.streams == 0, "the end of who never reads")
    assert made_up.client.get("/").status_code == 200


def test_a_connection_without_a_whole_request_is_closed(made_up: Served) -> None:
    with socket.create_connection(("127.0.0.1", made_up.config.page_port), timeout=10) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: loc")
        assert slow.recv(1) == b""


def test_the_fleet_is_broken_in_one_way_at_a_time() -> None:
    config = Settings(watch_port=free_port())
    broken, mended = threading.Event(), threading.Event()

    def run(name: str, _config: Settings, say: object) -> None:
        assert callable(say)
        say("Redis is <b>shut</b> down.")
        broken.set()
        mended.wait(30)
        raise Unavailable("Redis was not restarted")

    with serving(config, facts, Demolition(config, {"stop-redis": STOP_REDIS}, run)) as served:
        assert ">Stop Redis</button>" in served.html
        assert served.post("/break", way="drop-everything").status_code == 400
        with served.ticks() as ticks:
            next(ticks)
            assert served.post("/break", way="stop-redis").status_code == 303
            broken.wait(30)
            tick = next(tick for tick in ticks if "shut" in tick["parts"].get("going-on", ""))
            assert tick["parts"]["going-on"] == "Redis is &lt;b&gt;shut&lt;/b&gt; down."
            assert " disabled" in served.html
            again = served.post("/break", way="stop-redis")
            assert (again.status_code, again.text) == (409, "“Stop Redis” is still under way\n")
            mended.set()
            said = [tick["parts"].get("going-on") for tick, _ in zip(ticks, range(3), strict=False)]
            assert "Redis was not restarted" in said
        eventually(lambda: not served.site.scene.breakage.way)
        assert " disabled" not in served.html


def test_that_all_is_well_again_is_told_after_what_shows_it() -> None:
    """Although it is said at once, and a look may just be under way that began before."""
    config = Settings(watch_port=free_port())
    looking, healed, looked = threading.Event(), threading.Event(), threading.Event()

    def look() -> Facts:
        after = healed.is_set()
        looking.set()
        assert looked.wait(PATIENCE)
        return facts(1, readers=(total(counts=counts(gaps_healed=1)),)) if after else seen

    def run(_name: str, _config: Settings, say: Callable[[str], None]) -> None:
        looking.clear()
        looked.clear()
        assert looking.wait(PATIENCE)
        healed.set()
        say(Claim("All totals are exact up to ride 9."))
        say(Claim("  consumer0 at ride 9: `total` 7 m"))
        say(Claim("Healed: all is well."))
        looked.set()

    seen = facts(readers=(total(),))
    looked.set()
    with serving(config, look, Demolition(config, {"stop-redis": STOP_REDIS}, run)) as served:
        assert served.post("/break", way="stop-redis").status_code == 303
        eventually(lambda: not served.site.scene.breakage.way)
        told = [event.words for _, event in served.watcher.feed.newest()]
        assert served.site.scene.breakage.going_on == "Healed: all is well."
    assert told == [
        "All totals are exact up to ride 9. consumer0 at ride 9: total 7 m Healed: all is well.",
        "consumer0 healed a gap: 0 rides, 0.000 m",
        "“Stop Redis” was pressed",
    ]


def test_a_way_that_is_refused_at_once_is_over_after_the_next_look_and_says_why() -> None:
    config = Settings(watch_port=free_port())

    def run(*_: object) -> None:
        raise Unavailable("no fleet runs")

    with serving(config, facts, Demolition(config, {"stop-redis": STOP_REDIS}, run)) as served:
        assert served.post("/break", way="stop-redis").status_code == 303
        eventually(lambda: not served.site.scene.breakage.way)
        assert " disabled" not in served.html
        told = [(event.mood, event.words) for _, event in served.watcher.feed.newest()]
    assert told == [("fault", "No fleet runs"), ("fault", "“Stop Redis” was pressed")]


def test_totals_are_told_and_what_a_program_prints_is_only_shown_while_it_runs() -> None:
    config = Settings(watch_port=free_port())
    shown: list[str] = []

    def run(_name: str, _config: Settings, say: Callable[[str], None]) -> None:
        say("A total is wrong already:")
        say("  consumer0 at ride 9: 7 m, which is +1 m off")
        say(Printed("  | total | 7 |"))
        eventually(lambda: "| total | 7 |" in served.site.scene.breakage.going_on)
        shown.append(served.site.scene.breakage.going_on)
        raise NotHealed("not all totals are exact")

    with serving(config, facts, Demolition(config, {"stop-redis": STOP_REDIS}, run)) as served:
        assert served.post("/break", way="stop-redis").status_code == 303
        eventually(lambda: not served.site.scene.breakage.way)
        told = [event.words for _, event in served.watcher.feed.newest()]
    assert shown == ["| total | 7 |"]
    assert told == [
        "Not all totals are exact",
        "A total is wrong already: consumer0 at ride 9: 7 m, which is +1 m off",
        "“Stop Redis” was pressed",
    ]


def test_what_is_broken_from_a_terminal_is_told_and_no_button_works_meanwhile(
    tmp_path: Path,
) -> None:
    config = Settings(watch_port=free_port(), data_dir=tmp_path)
    demolition = Demolition(config, {"stop-redis": STOP_REDIS}, print, breaking.under_way)
    with serving(config, facts, demolition) as served:
        assert "All is well" in served.html
        with alone(tmp_path, "stop-redis"):
            eventually(lambda: "Being broken: Redis is stopped" in served.html)
            assert " disabled" in served.html
            refused = served.post("/break", way="stop-redis")
            wait = "Somebody breaks the fleet from a terminal: wait for its end."
            assert (refused.status_code, refused.text) == (409, f"{wait}\n")
            assert wait in Markup(served.html).text
        eventually(lambda: "All is well" in served.html)
        assert wait not in Markup(served.html).text
        assert " disabled" not in served.html
        told = [event.words for _, event in served.watcher.feed.newest()]
    assert told == [
        "nobody breaks the fleet from a terminal any more",
        "somebody breaks the fleet from a terminal: stop-redis",
    ]


def test_rides_move_on_to_the_log_only_when_they_are_sent() -> None:
    config = Settings(watch_port=free_port())
    looks = count()

    def look() -> Facts:
        number = next(looks)
        rides = replace(database().rides, taken=number, sent=max(0, number - 5))
        return facts(number, rides=rides)

    with serving(config, look) as served, served.ticks() as ticks:
        next(ticks)
        found = [(tick["flowed"], tick["sent"]) for tick, _ in zip(ticks, range(8), strict=False)]
    assert found[0] == (True, False)
    assert found[-1] == (True, True)


def test_through_a_proxy_one_can_look_and_nothing_more() -> None:
    """Whatever it is that marks the request; nor is the token told, in the page or its events."""
    config = Settings(watch_port=free_port())
    dead = facts(receipts=receipts(newest_dead=(dead_receipt(),)))
    with serving(
        config, lambda: dead, Demolition(config, {"stop-redis": STOP_REDIS}, print)
    ) as served:
        token = served.site.scene.token
        assert served.fields().count("button") == 2
        assert token in served.html
        for name in ("Forwarded", "X-Forwarded-For", "x-forwarded-proto", "X-Real-IP", "Via"):
            mark = {name: "for=203.0.113.9"}
            page = served.client.get("/", headers=mark)
            assert "All is well" in page.text
            assert token not in page.text
            assert "<button" not in page.text
            for path in ("/replay", "/break"):
                browser = {"Origin": served.url, "Sec-Fetch-Site": "same-origin"}
                form = {"token": token, "ride": "200", "way": "stop-redis"}
                answer = served.client.post(path, data=form, headers={**browser, **mark})
                assert (answer.status_code, "proxy" in answer.text) == (403, True)
        with served.client.stream("GET", "/events", headers=mark) as answer:
            event = next(parsed(answer.iter_text())).data
        assert "All is well" in event
        assert token not in event
        assert "<button" not in event
        assert not served.site.scene.breakage.way


def test_only_the_demo_has_buttons_that_break_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded = Settings(watch_port=free_port())
    assert in_the_demo(embedded) is None  # nothing but honcho starts a demo
    monkeypatch.setenv("HONCHO_PROCESS_NAME", "watch.1")
    assert in_the_demo(embedded) is not None
    assert in_the_demo(embedded.model_copy(update={"watch_host": "0.0.0.0"})) is None  # noqa: S104
    assert in_the_demo(of_world(world, redis_url="")) is None
    assert in_the_demo(of_world(world, database_url="")) is None


def test_a_look_that_hangs_holds_nobody_up() -> None:
    """The page is there, and says what it knows; at the end nobody waits for the look."""
    hanging, looks = threading.Event(), [0]

    def look() -> Facts:
        looks[0] += 1
        if looks[0] > 1:
            hanging.wait(60)
        return facts()

    async def watch() -> float:
        watcher = Watcher(look)
        watching = asyncio.create_task(watcher.run())
        await watcher.fresh()
        await asyncio.sleep(SEEN)
        began = time.monotonic()
        seen = await watcher.fresh()
        assert seen.database == database()
        watching.cancel()
        return time.monotonic() - began

    began = time.monotonic()
    assert asyncio.run(watch()) < 4
    assert time.monotonic() - began < 6
    hanging.set()


def test_a_look_that_fails_is_told_and_followed_by_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """However it fails, and whatever can't be told of it: the process goes on."""
    looks = [0]

    def look() -> Facts:
        looks[0] += 1
        if looks[0] == 2:
            raise KeyError("a surprise")
        return facts(looks[0])

    async def watch() -> list[str]:
        watcher = Watcher(look)
        watching = asyncio.create_task(watcher.run())
        said = []
        with watcher.looking_on():
            for _ in range(3):
                await watcher.next_look()
                assert watcher.latest
                said.append(watcher.latest.postgres.reason)
        assert not watching.done()
        watching.cancel()
        assert "Postgres is back" in [event.words for _, event in watcher.feed.newest()]
        return said

    said = asyncio.run(watch())
    assert said[0] == said[2] == ""
    assert "this look failed" in said[1]
    assert "a surprise" in said[1]
    assert [record.message for record in caplog.records].count(
        "a look at the fleet failed; the next one may not"
    ) == 1


def test_what_waits_for_a_look_comes_though_what_happened_can_not_be_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def watch() -> None:
        watcher, looked = Watcher(facts), asyncio.Event()
        monkeypatch.setattr(watcher, "history", None)  # so that adding to it raises
        watcher.after_look = lambda began: looked.set()
        watching = asyncio.create_task(watcher.run())
        async with asyncio.timeout(PATIENCE):
            await looked.wait()
        watching.cancel()

    asyncio.run(watch())


def test_nobody_looks_more_than_once_a_second() -> None:
    looks: list[float] = []

    def look() -> Facts:
        looks.append(time.monotonic())
        return facts(len(looks))

    async def watch() -> None:
        watcher = Watcher(look)
        watching = asyncio.create_task(watcher.run())
        with watcher.looking_on():
            ends = time.monotonic() + 2.5 * SEEN
            while time.monotonic() < ends:
                await asyncio.gather(*(watcher.fresh() for _ in range(20)))
                await asyncio.sleep(0.01)
        watching.cancel()

    asyncio.run(watch())
    pauses = [later - earlier for earlier, later in pairwise(looks)]
    assert len(pauses) >= 2
    assert min(pauses) > 0.98 * SEEN


def test_the_process_ends_within_a_second_although_streams_are_open(world: World) -> None:
    page = Page(world)
    with page.client.stream("GET", "/events") as answer:
        next(answer.iter_text())
        began = time.monotonic()
        assert page.service.stop() == 0
        assert time.monotonic() - began < 1.5
    assert page.service.output.read_text() == f"Listening on {page.url}\n"


def test_a_taken_port_is_waited_for_in_a_fleet(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """There the end of one process is the end of all."""
    monkeypatch.setenv("HONCHO_PROCESS_NAME", "watch.1")
    taken = socket.create_server(("127.0.0.1", 0))
    config = Settings(watch_port=taken.getsockname()[1], data_dir=tmp_path)
    with ThreadPoolExecutor(1) as thread:
        with taken:
            waiting = thread.submit(listen, config)
            eventually(lambda: caplog.messages, "a warning")
            assert "Address already in use; WATCH_HOST and WATCH_PORT" in caplog.text
            assert not waiting.done()
        with waiting.result(30) as listener:
            assert listener.getsockname()[1] == config.page_port
    # Any other address that can't be had will not be had later.
    with pytest.raises(SystemExit, match=r"192\.0\.2\.1 port"):
        listen(config.model_copy(update={"watch_host": "192.0.2.1"}))


def test_a_taken_port_is_one_clear_line(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        second = world.service("watch", WATCH_PORT=str(port))
        assert second.process.wait(30) == 1
    assert second.output.read_text() == (
        f"can't listen on 127.0.0.1 port {port}: Address already in use;"
        " WATCH_HOST and WATCH_PORT choose another address\n"
    )
