"""The page's buttons that break the fleet: one way at a time, told until it has healed."""

import threading

import pytest

from demo.breaking.healing import Kind, Say
from demo.page import in_the_demo
from rocket_rides.settings import Settings
from tests.support.facts import counts, facts, total
from tests.support.page import serving
from tests.support.world import PATIENCE, eventually
from unified_log.errors import Unavailable
from watch.facts import Facts


def test_the_fleet_is_broken_in_one_way_at_a_time() -> None:
    broken, repaired = threading.Event(), threading.Event()

    def run(_name: str, _config: Settings, say: Say) -> None:
        say("Redis is <b>shut</b> down.")
        broken.set()
        repaired.wait(PATIENCE)
        raise Unavailable("Redis was not restarted")

    with serving(run=run) as served:
        assert ">Stop Redis</button>" in served.html
        with served.ticks() as ticks:
            next(ticks)
            assert served.press("stop-redis").status_code == 303
            assert broken.wait(PATIENCE)
            tick = next(tick for tick in ticks if "shut" in tick["parts"].get("going-on", ""))
            assert tick["parts"]["going-on"] == "Redis is &lt;b&gt;shut&lt;/b&gt; down."
            assert " disabled" in served.html
            again = served.press("stop-redis")
            assert (again.status_code, again.text) == (409, "“Stop Redis” is still under way\n")
            repaired.set()
            eventually(  # some of the ticks may have been sent before
                lambda: next(ticks)["parts"].get("going-on") == "Redis was not restarted",
                "the end of it, in a tick",
            )
        eventually(lambda: not served.site.scene.breakage.way)
        assert " disabled" not in served.html


def test_that_all_is_well_again_is_told_after_what_shows_it() -> None:
    """Although it is said at once, and a look may just be under way that began before."""
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
        say("  consumer0 at position 9: `total` 7 m", Kind.CLAIM)
        say("Healed: all is well.", Kind.CLAIM)
        looked.set()

    seen = facts(readers=(total(),))
    looked.set()
    with serving(look, run) as served:
        assert served.press("stop-redis").status_code == 303
        eventually(lambda: not served.site.scene.breakage.way)
        told = [" ".join(event.words.splitlines()) for _, event in served.watcher.feed.newest()]
        assert served.site.scene.breakage.going_on == "Healed: all is well."
    assert told == [
        "All totals are exact up to ride 9. Healed: all is well.",
        "consumer0 healed a gap: 0 records",
        "“Stop Redis” was pressed",
    ]


def test_a_way_that_is_refused_at_once_says_why_and_its_button_can_be_pressed_again() -> None:
    """Whoever looks on is told of both, although begin and end may come between two looks."""

    def run(*_: object) -> None:
        raise Unavailable("no fleet runs")

    with serving(run=run) as served, served.ticks() as ticks:
        next(ticks)
        assert served.press("stop-redis").status_code == 303
        buttons = (tick["parts"]["breaking"] for tick in ticks if "breaking" in tick["parts"])
        assert " disabled" in next(buttons)
        assert " disabled" not in next(buttons)
        told = [(event.mood, event.words) for _, event in served.watcher.feed.newest()]
    assert told == [("fault", "No fleet runs"), ("fault", "“Stop Redis” was pressed")]


def test_only_the_demo_has_buttons_that_break_it(monkeypatch: pytest.MonkeyPatch) -> None:
    embedded = Settings()
    assert in_the_demo(embedded) is None  # nothing but honcho starts a demo
    monkeypatch.setenv("HONCHO_PROCESS_NAME", "watch.1")
    assert in_the_demo(embedded) is not None
    for elsewhere in (
        {"watch_host": "0.0.0.0"},  # noqa: S104
        {"database_url": "postgresql://elsewhere/x"},
        {"redis_url": "redis://elsewhere"},
    ):
        assert in_the_demo(embedded.model_copy(update=elsewhere)) is None
