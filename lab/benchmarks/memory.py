"""What each process of a whole fleet takes in memory under a steady load, and whether that grows.

By PSS: what is a process's own, and its share of what it has in common with others. Of a service
that runs several processes, the largest is shown. Linux only.
"""

import contextlib
import time
from collections.abc import Iterator
from statistics import median

import psutil
import psycopg

from lab.benchmarks import fleet, load
from lab.benchmarks.figures import Figure, Goal, Table, number
from lab.benchmarks.onlookers import onlookers
from lab.benchmarks.stand import Stand
from lab.benchmarks.watch import ONLOOKERS, watching
from rocket_rides import database

RATE = 200.0  # rides per second
SECONDS = 20.0
EVERY = 2.0  # seconds between looks
AN_HOUR = 60.0  # minutes
POINTS = 60  # of a curve
MEGABYTE = 1e6
MOST = 60.0  # megabytes
SMALL = Goal("value", "<=", MOST)
FLAT = Goal("value", "<=", 1)  # megabytes, in the second half
SHOWN = 7  # of a curve's points, in numbers
BLOCKS = "▁▂▃▄▅▆▇█"

Look = dict[str, float]  # each service's largest process, in megabytes


def measure(stand: Stand) -> list[Figure]:
    """For some seconds, with a hundred onlookers: the most that was seen of each process."""
    with _loaded(stand) as roots:
        looks = _looks(roots, EVERY, int(SECONDS / EVERY))
    return [
        Figure(f"{name}, PSS", "MB", goal=SMALL, runs=[max(look[name] for look in looks)])
        for name in roots
    ]


def hour(stand: Stand, minutes: float = AN_HOUR) -> list[Figure | Table]:
    """For an hour, or for so many minutes: the curve of each process."""
    with _loaded(stand) as roots, database.connect(stand.postgres.url, "benchmark") as connection:
        before = _rides(connection)
        looks = _looks(roots, 60 * minutes / POINTS, POINTS)
        rate = (_rides(connection) - before) / (60 * minutes)
    return [
        Figure(f"Rides taken during {number(minutes)} minutes", "rides/s", runs=[rate]),
        *(grown(name, looks) for name in roots),
        curves(looks, minutes),
    ]


def _rides(connection: psycopg.Connection) -> int:
    rides: int = database.one_row(connection.execute("SELECT count(*) FROM rides"))[0]
    return rides


def _looks(roots: dict[str, psutil.Process], every: float, number: int) -> list[Look]:
    began = time.monotonic()
    looks = []
    for place in range(1, number + 1):
        time.sleep(max(0.0, began + place * every - time.monotonic()))
        looks.append({name: _largest(root) for name, root in roots.items()})
    return looks


def _largest(root: psutil.Process) -> float:
    sizes = []
    for process in [root, *root.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended meanwhile
            sizes.append(process.memory_full_info().pss / MEGABYTE)
    return max(sizes)


def grown(name: str, looks: list[Look]) -> Figure:
    """By how much the last tenth is above the tenth after the middle."""
    tenth, middle = len(looks) // 10, len(looks) // 2
    sizes = [look[name] for look in looks]
    grown = median(sizes[-tenth:]) - median(sizes[middle : middle + tenth])
    return Figure(f"Growth of {name} in the second half", "MB", goal=FLAT, runs=[grown])


def curves(looks: list[Look], minutes: float) -> Table:
    """Each process's memory, in numbers at some moments, and as a line between 0 and MOST."""
    shown = [len(looks) * place // SHOWN - 1 for place in range(1, SHOWN + 1)]
    at = [f"{number(minutes * (place + 1) / len(looks))} min" for place in shown]
    rows = [
        [
            name,
            *(number(looks[place][name]) for place in shown),
            "".join(_block(look[name]) for look in looks),
        ]
        for name in looks[0]
    ]
    return Table(["PSS in MB after", *at, f"from 0 to {MOST:.0f} MB"], rows)


def _block(megabytes: float) -> str:
    return BLOCKS[min(len(BLOCKS) - 1, int(len(BLOCKS) * megabytes / MOST))]


@contextlib.contextmanager
def _loaded(stand: Stand) -> Iterator[dict[str, psutil.Process]]:
    """A fleet that takes rides, all that belongs to it, by name."""
    with (
        fleet.fleet(stand) as running,
        stand.service("analytics.nightly") as nightly,
        watching(stand) as watch,
        onlookers(watch.port, ONLOOKERS),
        load.steadily(running.port, RATE),
    ):
        yield running.services | {
            "watch": watch.process,
            "nightly": nightly,
            "Postgres": psutil.Process(stand.postgres.pid),
            "Redis": psutil.Process(stand.redis.pid),
        }
