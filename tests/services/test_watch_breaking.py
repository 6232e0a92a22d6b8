"""The page's buttons that break the fleet: one way at a time, told until it has healed."""

import threading

import pytest

from demo.breaking import Kind, Say
from demo.page import Demolition, in_the_demo
from lab.ports import free_ports
from rocket_rides.errors import Unavailable
from rocket_rides.settings import Settings
from tests.support.facts import counts, facts, total
from tests.support.site import STOP_REDIS, of_world, serving
from tests.support.world import PATIENCE, World, eventually
from watch.facts import Facts


def test_the_fleet_is_broken_in_one_way_at_a_time() -> None:
    config = Settings(watch_port=free_ports())
    broken, mended = threading.Event(), threading.Event()

    def run(_name: str, _config: Settings, say: Say) -> None:
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
    config = Settings(watch_port=free_ports())
    looking, healed, looked = threading.Event(), threading.Event(), threading.Event()

    def look() -> Facts:
        after = healed.is_set()
        looking.set()
        assert looked.wait(PATIENCE)
        return facts(1, readers=(total(counts=counts(gaps_healed=1)),)) if after else seen

    def run(_name: str, _config: Settings, say: Say) -> None:
        looking.clear()
        looked.clear()
        assert looking.wait(PATIENCE)
        healed.set()
        say("All totals are exact up to ride 9.", Kind.CLAIM)
        say("  consumer0 at ride 9: `total` 7 m", Kind.CLAIM)
        say("Healed: all is well.", Kind.CLAIM)
        looked.set()

    seen = facts(readers=(total(),))
    looked.set()
    with serving(config, look, Demolition(config, {"stop-redis": STOP_REDIS}, run)) as served:
        assert served.post("/break", way="stop-redis").status_code == 303
        eventually(lambda: not served.site.scene.breakage.way)
        told = [" ".join(event.words.splitlines()) for _, event in served.watcher.feed.newest()]
        assert served.site.scene.breakage.going_on == "Healed: all is well."
    assert told == [
        "All totals are exact up to ride 9. Healed: all is well.",
        "consumer0 healed a gap: 0 rides, 0.000 m",
        "“Stop Redis” was pressed",
    ]


def test_a_way_that_is_refused_at_once_is_over_after_the_next_look_and_says_why() -> None:
    config = Settings(watch_port=free_ports())

    def run(*_: object) -> None:
        raise Unavailable("no fleet runs")

    with serving(config, facts, Demolition(config, {"stop-redis": STOP_REDIS}, run)) as served:
        assert served.post("/break", way="stop-redis").status_code == 303
        eventually(lambda: not served.site.scene.breakage.way)
        assert " disabled" not in served.html
        told = [(event.mood, event.words) for _, event in served.watcher.feed.newest()]
    assert told == [("fault", "No fleet runs"), ("fault", "“Stop Redis” was pressed")]


def test_only_the_demo_has_buttons_that_break_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded = Settings(watch_port=free_ports())
    assert in_the_demo(embedded) is None  # nothing but honcho starts a demo
    monkeypatch.setenv("HONCHO_PROCESS_NAME", "watch.1")
    assert in_the_demo(embedded) is not None
    assert in_the_demo(embedded.model_copy(update={"watch_host": "0.0.0.0"})) is None  # noqa: S104
    assert in_the_demo(of_world(world, redis_url="")) is None
    assert in_the_demo(of_world(world, database_url="")) is None
