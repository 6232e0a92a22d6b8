"""`python -m api.router SLOTS CELL`: gives slots, such as `00-7f`, to a cell, while rides come in.

Clients may repeat requests meanwhile: each key takes one ride, over all cells. Killed at any step,
it leaves what it was about in the map, and running it again goes on. At no moment is a slot open in
two cells:

1. before the map on disk says that the slots move: nothing.
2. before HAProxy knows it: requests still go to the old cell.
3. before the old cell refuses the keys (`api.router.moving`): the slots are paused. Whoever has a
   key of one gets a 503 with Retry-After.
4. before the keys are copied: the same. The copy is one transaction of the new cell's.
5. before the map on disk names the new cell: the same, with the keys in both cells.
6. before HAProxy knows it: the same, until it is restarted.
"""

import argparse
import fcntl
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path

import psycopg

from api.router import moving, slots
from api.router.slots import SLOTS, HAProxy, Move, Slots, move_of
from rocket_rides import database
from rocket_rides.database import LAST_CELL
from rocket_rides.errors import Refused, Unavailable, in_one_line
from rocket_rides.faults import reached
from rocket_rides.process import Parser
from rocket_rides.words import count


class Step(Enum):
    """Where it can be made to crash, in order."""

    PAUSED_ON_DISK = "after the map on disk says that the slots move"
    PAUSED = "after HAProxy knows it"
    FENCED = "after the old cell refuses the keys"
    COPIED = "after the keys are copied"
    SWITCHED_ON_DISK = "after the map on disk names the new cell"


def move(
    chosen: set[str], target: int, path: Path, router: HAProxy, databases: Mapping[int, str]
) -> int:
    """Give the slots to a cell; returns how many keys were copied. Raises Refused or psycopg.Error.

    Nothing moves unless HAProxy and all cells that it is about can be reached.
    """
    copied = 0
    with ExitStack() as until_the_end:
        until_the_end.enter_context(_the_only_move(path))
        now = slots.read(path)
        sources = {slot: _source(slot, now[slot], target) for slot in sorted(chosen)}
        given = {slot: source for slot, source in sources.items() if source != target}
        cells = {
            cell: until_the_end.enter_context(_connect(cell, databases))
            for cell in {target, *given.values()}
        }
        router.require_cell(target)
        router.set(now)  # a move that was killed may not have told it
        now |= {slot: str(Move(source, target)) for slot, source in given.items()}
        _tell(path, router, now, Step.PAUSED_ON_DISK)
        reached(Step.PAUSED)
        for source in sorted(set(given.values())):
            its = {slot for slot in given if given[slot] == source}
            moving.refuse(cells[source], its)
            reached(Step.FENCED)
            copied += moving.copy(cells[source], cells[target], its)
            reached(Step.COPIED)
        _tell(path, router, now | dict.fromkeys(given, str(target)), Step.SWITCHED_ON_DISK)
    return copied


@contextmanager
def _the_only_move(path: Path) -> Iterator[None]:
    """Lock the map's folder. Raises Refused where another move has it."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise Refused("another move is under way") from None
    finally:
        os.close(folder)


def _source(slot: str, value: str, target: int) -> int:
    """The cell that a slot comes from. Raises Refused if it is on its way to another one."""
    under_way = move_of(value)
    if under_way and under_way.target != target:
        raise Refused(
            f"slot {slot} is on its way to cell {under_way.target}: finish that, by"
            f" `python -m api.router {slot} {under_way.target}`"
        )
    return under_way.source if under_way else int(value)


def _connect(cell: int, databases: Mapping[int, str]) -> psycopg.Connection:
    if cell not in databases:
        raise Refused(f"CELL_{cell}_DATABASE_URL is not set: which database has cell {cell}?")
    connection = database.connect(databases[cell], "router")
    try:
        database.require_current_schema(connection, cell)
        database.require_writable(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _tell(path: Path, router: HAProxy, new: Slots, step: Step) -> None:
    """Disk first: what HAProxy does must outlast its restart."""
    slots.write(path, new)
    reached(step)
    router.set(new)


def some_slots(text: str) -> set[str]:
    """Slots such as `00-7f,a0`. Raises argparse.ArgumentTypeError."""
    chosen: set[str] = set()
    for part in text.lower().split(","):
        first, _, last = part.partition("-")
        if first not in SLOTS or (last or first) not in SLOTS or (last or first) < first:
            raise argparse.ArgumentTypeError(
                f"{part} is no slot from 00 to ff, and no range of them"
            )
        chosen.update(SLOTS[int(first, 16) : int(last or first, 16) + 1])
    return chosen


def main() -> None:
    """Move slots, and say how many keys went along."""
    parser = Parser("python -m api.router", __doc__)
    parser.add_argument("slots", type=some_slots, metavar="SLOTS", help="such as 00-7f,a0")
    parser.add_argument("cell", type=int, metavar="CELL", help="the number of the cell")
    given = parser.parse_args()
    databases = {
        cell: url
        for cell in range(LAST_CELL + 1)
        if (url := os.environ.get(f"CELL_{cell}_DATABASE_URL"))
    }
    try:
        if not 0 <= given.cell <= LAST_CELL:
            raise Refused(f"a cell has a number from 0 to {LAST_CELL}, not {given.cell}")
        path = Path(_required("ROUTER_MAP"))
        router = HAProxy(_required("ROUTER_SOCKET"), path)
        copied = move(given.slots, given.cell, path, router, databases)
    except (Refused, Unavailable, psycopg.Error, OSError) as reason:
        sys.exit(
            f"not moved, or not yet: {in_one_line(reason)}; what has begun goes on if run again"
        )
    moved = count(len(given.slots), "slot")
    print(f"cell {given.cell} has {moved}; {count(copied, 'key')} copied")  # noqa: T201


def _required(name: str) -> str:
    if value := os.environ.get(name):
        return value
    raise Refused(f"{name} is not set: it is HAProxy's own")


if __name__ == "__main__":
    main()
