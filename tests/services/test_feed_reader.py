"""The reader of the feed that docs/writing-a-consumer.md shows is short, and exact."""

import json
import random
import re
import sqlite3
import time
from contextlib import closing, suppress
from decimal import Decimal
from pathlib import Path

import httpx

from lab.chaos.backup import Backup
from rocket_rides.settings import PROJECT
from tests.support.api import Api
from tests.support.clusters import restore
from tests.support.disasters import flush
from tests.support.world import Service, World, eventually

PAGE = (PROJECT / "docs/writing-a-consumer.md").read_text()
MOST_LINES = 26  # that say something
KILLS = 4
MOST_PAGES = 1000


def example() -> str:
    """The first block of Python on the page."""
    shown = re.search(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert shown
    return shown[1]


def test_the_reader_is_short() -> None:
    assert len([line for line in example().splitlines() if line]) <= MOST_LINES


def started(world: World, api: Api, folder: Path) -> Service:
    few = example().replace("< 1000", "< 3")
    Path(folder, "ride_total.py").write_text(few)
    feed = f"{api.client.base_url}/log?type=ride.create&limit=3"
    path = {"PYTHONPATH": f"{folder}:{PROJECT}"}
    return world.service("ride_total", feed, str(folder / "rides.db"), **path)


def kept(folder: Path) -> list[int]:
    """The reader's total, once it has one."""
    with closing(sqlite3.connect(folder / "rides.db")) as found, suppress(sqlite3.OperationalError):
        return [total for (total,) in found.execute("SELECT millimetres FROM total")]
    return []


def is_exact(world: World, folder: Path) -> bool:
    return kept(folder) == [world.truth[1] * 1000]


class Cached:
    """Readers behind one cache, which keeps all that it may."""

    def __init__(self, api: Api) -> None:
        self.api, self.kept = api, dict[str, httpx.Response]()
        self.been = [("/log?type=ride.create&limit=3", Decimal(0))]  # a page, and the sum before it

    def get(self, page: str) -> httpx.Response:
        answer = self.kept.get(page) or self.api.client.get(page)
        if "immutable" in answer.headers["cache-control"]:
            self.kept[page] = answer
        return answer

    def follow(self, page: str, total: Decimal) -> Decimal:
        """The sum at the end, for who stands there."""
        for _ in range(MOST_PAGES):
            answer = self.get(page)
            if answer.status_code == 410:
                page, total = self.been[0]
                continue
            rides = json.loads(answer.text, parse_float=Decimal)
            if not rides:
                return total
            total += sum(ride["data"]["distance"] for ride in rides)
            page = str(answer.url.join(answer.links["next"]["url"]))
            self.been.append((page, total))
        raise AssertionError("it never comes to the end")


def test_it_is_exact_through_kills_a_wiped_log_and_a_restore(
    own_world: World, tmp_path: Path
) -> None:
    """Others read through a cache, which still has pages of what the restore has lost."""
    world, moments = own_world, random.Random(7)
    streamer = world.service("streamer", DOUBLE_SEND_RATE="0.3").says("leading")
    api = Api(world)
    for _ in range(KILLS):
        world.take(*range(1, 40), "0.001")
        had, reader = kept(tmp_path), started(world, api, tmp_path)
        eventually(lambda: kept(tmp_path) != had, "a page")  # noqa: B023
        time.sleep(moments.uniform(0, 0.1))
        reader.kill()
    flush(world)
    world.take("999999999.999")
    reader = started(world, api, tmp_path)
    eventually(lambda: is_exact(world, tmp_path), "the exact total")
    assert streamer.stop() == 0
    backup = Backup(world.postgres, "first")
    world.send(*range(100, 109))
    cached = Cached(api)
    assert cached.follow(*cached.been[0]) == world.truth[1]
    at_risk = cached.been[-12:]
    eventually(lambda: is_exact(world, tmp_path), "the total of what will be lost")
    world.postgres.kill()
    eventually(lambda: "503" in reader.output.read_text(), "a page that is not to be had")
    restore(world, backup, recovery_signal=False)
    world.send(*range(1, 50))  # some of them at positions that others had
    eventually(lambda: is_exact(world, tmp_path), "the exact total of what there is")
    assert {cached.follow(*each) for each in at_risk} == {world.truth[1]}
    api.client.close()
