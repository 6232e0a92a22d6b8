"""One move of slots: the steps in which a cell gets them, while rides come in.

A crash leaves behind, by the step at which it comes:

1. before any of the slots' own cells refuses their keys (`cells.router.keys`): nothing.
2. before the keys are copied: requests with such a key get a 503 with Retry-After.
3. before the map on disk names the new cell: the same, with the keys in both cells.
4. before the new cell takes the keys: the same.
5. before HAProxy knows the new cell: the same, until HAProxy is restarted.
"""

import sys
from collections.abc import Mapping
from contextlib import ExitStack, closing
from enum import Enum
from pathlib import Path

import psycopg

from cells.router import slots
from cells.router.haproxy import HAProxy
from cells.router.keys import Keys
from cells.router.slots import Slots, ranges
from unified_log.errors import Refused, in_one_line
from unified_log.faults import reached


class MoveStep(Enum):
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
    reached(MoveStep.REFUSED)
    # The slots' own cells first: after a restore, their keys win over old copies in other cells.
    others = sorted(cells.keys() - {target}, key=lambda cell: not _slots_of(cell, now) & chosen)
    copied = sum(cells[target].copy(cells[cell], chosen, _slots_of(cell, now)) for cell in others)
    reached(MoveStep.COPIED)
    for keys in cells.values():
        keys.require_session()
    new = now | dict.fromkeys(chosen, target)
    slots.write(path, new)  # before HAProxy: its routing must outlast its restart
    reached(MoveStep.SWITCHED_ON_DISK)
    cells[target].take_only(_slots_of(target, new), new=chosen)
    reached(MoveStep.ACCEPTED)
    router.set(new)
    return copied


def _slots_of(cell: int, all_slots: Slots) -> set[str]:
    return {slot for slot, its_cell in all_slots.items() if its_cell == cell}


def _database(cell: int, databases: Mapping[int, str]) -> str:
    if cell not in databases:
        raise Refused(f"CELL_{cell}_DATABASE_URL is not set: which database has cell {cell}?")
    return databases[cell]
