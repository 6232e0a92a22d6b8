"""Who must be there: a reader that the last run saw, and that has gone or fallen back, is found.

The readers of the log are taken from outside, from their checkpoints and from the last completed
run, and then joined to their states: one whose state or checkpoint is gone does not agree, it is
missing. It leaves rightly by `python -m consumers.remove`, which says so in `removed_readers`.

The minutes and the receipts say in rows of their own how far they are, and these rows never go. So
nobody waits for minutes while there is no rollup, nor for receipts that were removed, until they
come further than they had ever been.

A reader that recounts, since its log was repaired or it handles more types of records than before,
is neither wrong nor behind: it is said to recount, and a later run compares it. Once it has begun,
its sums have to fit the position at which it stands, as ever. One that recounted at a run long ago,
too, is behind.

A reader stands past what was sent only where somebody has put it there. Once it is set back, nobody
waits for it to come as far again.
"""

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime

import psycopg

from analytics.findings import (
    READER_BEHIND,
    READER_GONE,
    READER_RECOUNTS,
    READER_STRAY,
    Finding,
)
from analytics.freeze import Frozen, FrozenReader
from analytics.runs import Past, last_completed
from unified_log.database import one_row
from unified_log.words import printable

# Ten attempts at a receipt take a quarter of an hour, and a receiver may ask for longer pauses. A
# recount takes in a hundred million records an hour, or more.
LONG_AGO = "6 hours"
# A run may begin between a removal and its commit, and see the reader. That takes a few seconds.
COMMITS_WITHIN = "1 minute"
# After a run whose clock was ahead, nobody knows who left before it.
REMOVED = """
    SELECT kind, name FROM removed_readers
    WHERE removed_at >= %(moment)s - %(within)s::interval OR %(moment)s > clock_timestamp()
"""
# Where they stand, or further ahead.
STOPPED = """
    SELECT EXISTS (
        SELECT FROM removed_readers WHERE kind = %s AND name = %s AND position >= %s
    )
"""
# What says how far it is in a row of its own, and is not there before its service has ever run.
WATERMARKS = {"minutes": "the rollup's complete_to", "receipts": "the receipts' complete_to"}
PROVED = ("total", "ratings")  # kinds whose sums are compared, which tells who is past it, too
MINUTES, RECEIPTS = ("minutes", "all"), ("receipts", "all")

Readers = dict[tuple[str, str], FrozenReader]  # by their kinds and names


def missing(
    connection: psycopg.Connection,
    frozen: Frozen,
    last: Past | None,
    recounting: Collection[tuple[str, str]] = (),
) -> list[Finding]:
    """What the readers lack, as they were frozen.

    `recounting` are the kinds and names of those whose sums are not right yet.
    """
    long_ago = last_completed(connection, LONG_AGO)
    here = by_name(frozen.readers)
    found = [
        finding
        for each in recounting
        if each in here  # who has come since is not
        for finding in _recounts(here[each], long_ago)
    ]
    found += [
        Finding(READER_GONE, f"{called(each.kind, each.name)} has lost its state", key=each.name)
        for each in frozen.readers
        if not each.has_state
    ]
    found += [
        Finding(
            READER_STRAY, f"{_stands(each)}, past every record sent", key=f"{each.kind} {each.name}"
        )
        for each in frozen.readers
        if each.position > frozen.position and each.kind not in PROVED
    ]
    if last is None:
        return found
    idle = idle_watermarks(connection, _furthest(here, frozen, last))
    removed = removed_since(connection, last.started_at)
    for (kind, name), stood in last.positions().items():
        reader = here.get((kind, name))
        if reader is None:
            if (kind, name) not in removed:
                about = f"{called(kind, name)} is gone; it stood at position {stood}"
                found.append(Finding(READER_GONE, about, key=f"{kind} {name}"))
        elif (kind, name) not in idle and (stood > frozen.history.start or kind not in WATERMARKS):
            due = min(_due(kind, stood, last, long_ago), frozen.position)
            if reader.position < due and reader.recounts:
                if (kind, name) not in recounting:
                    found += _recounts(reader, long_ago)
            elif reader.position < due:
                about = f"{_stands(reader)}; all up to {due} was there at the last run"
                found.append(Finding(READER_BEHIND, about, key=f"{kind} {name}"))
    return found


def _stands(reader: FrozenReader) -> str:
    return f"{called(reader.kind, reader.name)} stands at position {reader.position}"


def _recounts(reader: FrozenReader, long_ago: Past | None) -> Iterator[Finding]:
    who = called(reader.kind, reader.name)
    key = f"{reader.kind} {reader.name} {reader.recounted}"  # of this recount
    yield Finding(READER_RECOUNTS, f"{who} recounts: a later run compares it", key=key)
    before = long_ago.findings if long_ago else []
    if long_ago and (READER_RECOUNTS, key) in {(each["kind"], each["key"]) for each in before}:
        about = f"{who} still recounts, as it did at run {long_ago.id}, {LONG_AGO} ago or more"
        yield Finding(READER_BEHIND, about, key=key)


def _due(kind: str, stood: int, last: Past, long_ago: Past | None) -> int:
    """How far a reader must be by now. A receipt may be under way, but not for so long."""
    if kind == "receipts":
        return max(stood, long_ago.position if long_ago else 0)
    return last.position


def removed_since(connection: psycopg.Connection, moment: datetime) -> set[tuple[str, str]]:
    """Who was removed after that moment, or was perhaps still there."""
    return set(connection.execute(REMOVED, {"moment": moment, "within": COMMITS_WITHIN}))


def called(kind: str, name: str) -> str:
    """A reader as a sentence names it."""
    if kind in WATERMARKS:
        return WATERMARKS[kind]
    return f"{printable(kind)} {printable(name)}"


def carried_over(
    connection: psycopg.Connection, frozen: Frozen, last: Past | None
) -> list[FrozenReader]:
    """The readers that the next run has to find: also those that this one has missed.

    Each at the furthest position that it had; so who has fallen back is found until it is there.
    """
    found = _furthest(by_name(frozen.readers), frozen, last)
    if last is not None:
        removed = removed_since(connection, last.started_at)
        for (kind, name), stood in last.positions().items():
            if (kind, name) not in found and (kind, name) not in removed:
                found[kind, name] = FrozenReader(kind, name, stood)
    idle = idle_watermarks(connection, found)
    return [reader for key, reader in found.items() if key not in idle]


def by_name(readers: Iterable[FrozenReader]) -> Readers:
    return {(each.kind, each.name): each for each in readers}


def _furthest(here: Readers, frozen: Frozen, last: Past | None) -> Readers:
    """Those who are here, each at the furthest position that it had, up to what was sent."""
    before = last.positions() if last else {}
    furthest = {key: max(each.position, before.get(key, 0)) for key, each in here.items()}
    return {
        key: each._replace(position=min(furthest[key], frozen.position))
        for key, each in here.items()
    }


def idle_watermarks(connection: psycopg.Connection, readers: Readers) -> set[tuple[str, str]]:
    """The watermarks that nobody raises any more; the readers are at their furthest positions."""
    idle = set()
    if not any(kind == "rollup" for kind, _ in readers):
        idle.add(MINUTES)
    if one_row(connection.execute(STOPPED, [*RECEIPTS, readers[RECEIPTS].position])) == (True,):
        idle.add(RECEIPTS)
    return idle
