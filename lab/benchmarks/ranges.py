"""Ranges amid ten million entries, and the memory that an entry takes.

The proposal of streams (RCP 11) promises a seek in the middle that is not slower than elsewhere,
and its author's article a million tennis matches in 16.8 MB, since listpacks keep the names of
fields once and ids as differences. Here are such matches, and rides as the streamer appends them.
"""

from collections.abc import Callable
from itertools import pairwise
from statistics import mean
from typing import Any

from consumers.rides import TYPE
from lab.benchmarks.figures import Figure
from lab.benchmarks.outbox import BATCH
from lab.benchmarks.stand import PATIENCE, Stand
from lab.progress import say
from lab.until import until
from unified_log.log import Log, Staged
from unified_log.terms import Term

MILLION = 1_000_000
ENTRIES = 10 * MILLION
# So many ranges in the middle, and at the end. Each time they are some 2 MB: from the second round
# on, the processor's cache may still have them, there as here.
PLACES = 200
ROUNDS = 5
COUNT = 100
TERM = Term("f00d" * 4, 0)
MATCHES = """
for i = ARGV[1], ARGV[2] - 1 do
  redis.call('XADD', KEYS[1], '*', 'player-a', i % 1000, 'player-b', i % 999, 'winner', i % 2)
end
"""

Append = Callable[[Log, int, int], object]  # entries from one number up to another, exclusive


def measure(stand: Stand) -> list[Figure]:
    """Both streams; the server writes no file meanwhile. A range is asked for amid the rides."""
    with stand.log() as log:
        log.command("CONFIG", "SET", "appendonly", "no")
        log.start_anew()
    with Log(stand.redis.url, "rides", PATIENCE) as log:
        places, rides = _filled(log, _rides)
        half, around = len(places) // 2, PLACES // 2
        middle, end = places[half - around : half + around], places[-PLACES - 1 : -1]
        query = Figure(f"`XRANGE COUNT {COUNT}` amid them", "µs", "at their end")
        query.measure(ROUNDS, lambda: _queried(log, middle), lambda: _queried(log, end))
    with Log(stand.redis.url, "matches", PATIENCE) as log:
        _, matches = _filled(log, lambda log, first, end: log.run(MATCHES, first, end))
    return [rides, query, matches]


def _filled(log: Log, append: Append) -> tuple[list[str], Figure]:
    """The ids that batches ended with, and the memory that an entry takes."""
    many = f"{ENTRIES // MILLION} million {log.name}"
    say(f"groups: {many}")
    # What earlier streams had is freed in the background.
    until(lambda: log.info("memory")["lazyfree_pending_objects"] == "0", "memory is not freed")
    before = int(log.info("memory")["used_memory"])
    places = []
    for first, end in pairwise(range(0, ENTRIES + 1, BATCH)):
        append(log, first, end)
        places.append(log.last_id())
    taken = int(log.info("memory")["used_memory"]) - before
    values = _values(log, places[len(places) // 2])
    figure = Figure(f"Each of {many}", "bytes", "its values", None, [taken / ENTRIES], [values])
    return places, figure


def _rides(log: Log, first: int, end: int) -> None:
    records = [
        Staged(id_, TYPE, f'{{"id": {id_}, "distance": {id_ % 99991}.{id_ % 1000:03}}}')
        for id_ in range(first + 1, end + 1)
    ]
    log.append(records, first, TERM)


def _values(log: Log, place: str) -> float:
    """The bytes of an entry's values, without the names of its fields and its id; a mean."""
    found = log.command("XRANGE", log.name, place, "+", "COUNT", BATCH)
    return mean(sum(map(len, fields[1::2])) for _, fields in found)


def _queried(log: Log, places: list[str]) -> float:
    """The server's microseconds for a range, without its way to the client."""
    log.command("CONFIG", "RESETSTAT")
    for place in places:
        found: list[Any] = log.command("XRANGE", log.name, place, "+", "COUNT", COUNT)
        if len(found) != COUNT:
            raise RuntimeError(f"a range has {len(found)} entries")
    [_, spent, *_] = log.info("commandstats")["cmdstat_xrange"].split(",")
    return int(spent.removeprefix("usec=")) / len(places)
