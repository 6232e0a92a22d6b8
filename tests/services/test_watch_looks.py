"""How the page looks at the fleet: once a second, whatever hangs or fails."""

import asyncio
import threading
import time
from dataclasses import replace

import pytest

from tests.support.facts import database, facts
from watch.facts import Facts, Server
from watch.watching import SEEN, Watcher

HANG = 60.0  # seconds
LACKS = replace(facts(), postgres=Server(False, "the schema is empty"), database=None)


def test_a_look_that_hangs_holds_nobody_up() -> None:
    """The page is there, and says what it knows; at the end nobody waits for the look."""
    hanging, looks = threading.Event(), [0]

    def look() -> Facts:
        looks[0] += 1
        if looks[0] > 1:
            hanging.wait(HANG)
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
    assert asyncio.run(watch()) < HANG / 2
    assert time.monotonic() - began < HANG / 2
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
        "a look at the fleet failed; the next one may succeed"
    ) == 1


@pytest.mark.parametrize(
    ("patience", "looks", "starting"),
    [
        (3600.0, [LACKS, LACKS], [True, True]),
        (3600.0, [LACKS, facts(), LACKS], [True, False, False]),
        (0.0, [LACKS], [False]),
    ],
)
def test_a_fleet_starts_until_both_servers_were_there_or_it_has_taken_too_long(
    monkeypatch: pytest.MonkeyPatch, patience: float, looks: list[Facts], starting: list[bool]
) -> None:
    monkeypatch.setattr("watch.watching.STARTING", patience)
    left = iter(looks)

    async def watch() -> list[bool]:
        watcher = Watcher(lambda: next(left))
        watching = asyncio.create_task(watcher.run())
        said = []
        with watcher.looking_on():
            for _ in looks:
                await watcher.next_look()
                said.append(watcher.starting)
        watching.cancel()
        return said

    assert asyncio.run(watch()) == starting


def test_nobody_looks_more_than_once_a_second() -> None:
    looks = [0]

    def look() -> Facts:
        looks[0] += 1
        return facts(looks[0])

    async def watch() -> None:
        watcher = Watcher(look)
        watching = asyncio.create_task(watcher.run())
        with watcher.looking_on():
            while looks[0] < 3:
                await asyncio.gather(*(watcher.fresh() for _ in range(20)))
                await asyncio.sleep(0.01)
        watching.cancel()

    began = time.monotonic()
    asyncio.run(watch())
    assert time.monotonic() - began > 1.99 * SEEN
