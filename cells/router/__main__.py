"""`python -m cells.router SLOTS CELL`: gives slots, like `00-7f`, to a cell, while rides come in.

Clients may repeat requests meanwhile: each key takes one ride, over all cells. Once a slot was
moved, no cell takes its keys unless the map on disk names that cell. If this is killed, running it
again goes on from there, and running it with the old cell gives the slots back. A crash leaves
behind, by the step at which it comes:

1. before any of the slots' own cells refuses their keys (`cells.router.moving`): nothing.
2. before the keys are copied: requests with such a key get a 503 with Retry-After.
3. before the map on disk names the new cell: the same, with the keys in both cells.
4. before the new cell takes the keys: the same.
5. before HAProxy knows the new cell: the same, until HAProxy is restarted.

A cell that was restored from a backup may lack rides, keys and its fence. Before its API starts,
`python -m cells.router restored CELL` puts the fence up, has all cells forget the keys of rides
that are lost, and copies into that cell what the others still have of its slots' keys.

Whatever the map says, no cell begins to take keys of slots that this was not run for: the map, or
a database, may be an old one. Where the two differ, this says so.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from enum import Enum
from pathlib import Path

import psycopg

from cells.router import slots
from cells.router.moving import Keys
from cells.router.slots import CELLS, SLOTS, HAProxy, Slots
from rocket_rides.cells import LAST_CELL
from unified_log import urls
from unified_log.errors import Refused, Unavailable, in_one_line
from unified_log.faults import reached
from unified_log.process import Parser
from unified_log.words import count

RESTORED = "restored"  # in place of slots


class Step(Enum):
    """Where it can be made to crash, in order."""

    REFUSED = "after all cells refuse the slots' keys"
    COPIED = "after the keys are copied"
    SWITCHED_ON_DISK = "after the map on disk names the new cell"
    ACCEPTED = "after the new cell takes the keys"


class Unfinished(Exception):
    """A move that has begun, and is to be run again."""


def move(
    given: set[str] | None,
    target: int,
    path: Path,
    router: HAProxy,
    databases: Mapping[int, str],
) -> int:
    """Give slots to a cell, or with None those that it has already.

    Returns how many keys were copied.

    Raises Refused, Unavailable, psycopg.Error or OSError before any key is refused or copied; later
    Unfinished.
    """
    with ExitStack() as until_the_end:
        named = {target, *slots.read(path).values(), *router.cells(), *databases}
        # All of them: a cell that is left out may take keys of these slots, or know some. In their
        # order: of two moves at once, on whatever hosts, one gets all of the locks.
        cells = {
            cell: until_the_end.enter_context(closing(Keys(cell, _database(cell, databases))))
            for cell in sorted(named)
        }
        now = slots.read(path)  # a move that ended meanwhile may have changed it
        if unknown := {*now.values()} - cells.keys():
            raise Refused(f"cell {min(unknown)} was given slots meanwhile: run this again")
        chosen = _slots_of(target, now) if given is None else given
        owners = {now[slot] for slot in chosen}
        if owners - {target}:
            router.require_up(target)
        router.set(now)  # a move that was killed may not have told it
        slots.write(path, now)  # if it can't be written, this fails before anything is done
        # It reads every key, so it comes while none are refused yet.
        for keys in cells.values():
            keys.forget_lost(cells)
        try:
            return _move(chosen, cells, target, path, router, now)
        except (Refused, psycopg.Error, OSError, KeyboardInterrupt) as reason:
            by_hand = isinstance(reason, KeyboardInterrupt)
            why = "interrupted" if by_hand else in_one_line(reason)
            if given is None:
                raise Unfinished(f"{why}; run this again before the cell's API starts") from None
            back = " or ".join(map(str, sorted(owners)))
            raise Unfinished(
                f"{why}; until it is run again, or run with cell {back} to give the slots back,"
                " their keys get a 503"
            ) from None


def _move(
    chosen: set[str], cells: dict[int, Keys], target: int, path: Path, router: HAProxy, now: Slots
) -> int:
    # The slots' own cells come last: they take the keys while we wait for the others' locks.
    for cell in sorted(cells, key=lambda cell: bool(_slots_of(cell, now) & chosen)):
        keys = cells[cell]
        stay = _slots_of(cell, now) - chosen
        if closed := stay - keys.take_only(stay):
            differs = (
                f"the map gives cell {cell} slots {ranges(closed)}, whose keys its database does"
                " not take: give it these slots, too"
            )
            print(differs, file=sys.stderr, flush=True)  # noqa: T201
    reached(Step.REFUSED)
    # The slots' own cells first: after a restore, their keys win over old copies in other cells.
    others = sorted(cells.keys() - {target}, key=lambda cell: not _slots_of(cell, now) & chosen)
    copied = sum(cells[target].copy(cells[cell], chosen, _slots_of(cell, now)) for cell in others)
    reached(Step.COPIED)
    for keys in cells.values():
        keys.require_session()
    new = now | dict.fromkeys(chosen, target)
    slots.write(path, new)  # before HAProxy: its routing must outlast its restart
    reached(Step.SWITCHED_ON_DISK)
    cells[target].take_only(_slots_of(target, new), new=chosen)
    reached(Step.ACCEPTED)
    router.set(new)
    return copied


def _slots_of(cell: int, all_slots: Slots) -> set[str]:
    return {slot for slot, its_cell in all_slots.items() if its_cell == cell}


def _database(cell: int, databases: Mapping[int, str]) -> str:
    if cell not in databases:
        raise Refused(f"CELL_{cell}_DATABASE_URL is not set: which database has cell {cell}?")
    return databases[cell]


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


def ranges(chosen: set[str]) -> str:
    """Slots as `some_slots` takes them."""
    numbers = sorted(int(slot, 16) for slot in chosen)
    first = [number for number in numbers if number - 1 not in numbers]
    last = [number for number in numbers if number + 1 not in numbers]
    return ",".join(
        f"{one:02x}" if one == two else f"{one:02x}-{two:02x}"
        for one, two in zip(first, last, strict=True)
    )


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
