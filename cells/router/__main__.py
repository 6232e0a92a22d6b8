"""`python -m cells.router SLOTS CELL`: gives slots, like `00-7f`, to a cell, while rides come in.

Clients may repeat requests meanwhile: each key takes one ride, over all cells. Once a slot was
moved, no cell takes its keys unless the map on disk names that cell. If this is killed, running it
again goes on from there, and running it with the old cell gives the slots back.

A cell that was restored from a backup may lack rides, keys and its fence. Before its API starts,
`python -m cells.router restored CELL` puts the fence up, has all cells forget the keys of rides
that are lost, and copies into that cell what the others still have of its slots' keys.

Whatever the map says, no cell begins to take keys of slots that this was not run for: the map, or
a database, may be an old one. Where the two differ, this says so.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg

from cells.router.haproxy import HAProxy
from cells.router.move import Unfinished, move
from cells.router.slots import CELLS, SLOTS
from rocket_rides.cells import LAST_CELL
from unified_log import urls
from unified_log.errors import Refused, Unavailable, in_one_line
from unified_log.process import Parser
from unified_log.words import count

RESTORED = "restored"  # in place of slots


def some_slots(text: str) -> set[str]:
    """Slots such as `00-7f,a0`. Raises argparse.ArgumentTypeError."""
    chosen: set[str] = set()
    for part in text.lower().split(","):
        first, is_range, last = part.partition("-")
        last = last if is_range else first
        if first not in SLOTS or last not in SLOTS or last < first:
            raise argparse.ArgumentTypeError(
                f"{part} is no slot from 00 to ff, and no range of them"
            )
        chosen.update(SLOTS[int(first, 16) : int(last, 16) + 1])
    return chosen


def slots_or_restored(text: str) -> set[str] | None:
    """None, for those that a restored cell has; or slots, as `some_slots` does."""
    return None if text == RESTORED else some_slots(text)


def a_cell(text: str) -> int:
    """A cell's number. Raises argparse.ArgumentTypeError."""
    if text not in CELLS:
        raise argparse.ArgumentTypeError(f"{text} is no cell from 0 to {LAST_CELL}")
    return CELLS[text]


def main() -> None:
    """Move slots, and say how many keys went along."""
    parser = Parser("python -m cells.router", __doc__)
    which = f"such as 00-7f,a0, or {RESTORED}"
    parser.add_argument("slots", type=slots_or_restored, metavar="SLOTS", help=which)
    parser.add_argument("cell", type=a_cell, metavar="CELL", help="the number of the cell")
    given = parser.parse_args()
    try:
        databases = dict(_databases())
        path = Path(_required("ROUTER_MAP"))
        router = HAProxy(_required("ROUTER_SOCKET"), path)
        copied = move(given.slots, given.cell, path, router, databases)
    except (Unavailable, psycopg.Error, OSError) as reason:
        sys.exit(f"not moved: {in_one_line(reason)}")
    except KeyboardInterrupt:
        sys.exit("not moved: interrupted")
    except Unfinished as reason:
        sys.exit(f"not moved yet: {reason}")
    has = f"has these {count(len(given.slots), 'slot')}" if given.slots else "can start"
    print(f"cell {given.cell} {has}; {count(copied, 'key')} copied")  # noqa: T201


def _databases() -> Iterator[tuple[int, str]]:
    for cell in CELLS.values():
        name = f"CELL_{cell}_DATABASE_URL"
        if url := os.environ.get(name):
            try:
                yield cell, urls.postgres(url)
            except ValueError as error:
                raise Refused(f"{name} is refused: {error}") from None


def _required(name: str) -> str:
    if value := os.environ.get(name):
        return value
    raise Refused(f"{name} is not set: give it the value that HAProxy has")


if __name__ == "__main__":
    main()
