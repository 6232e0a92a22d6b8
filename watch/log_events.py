"""What happened to the log, in words: what it lost, and the entries that readers set aside."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from rocket_rides.log import START, as_numbers
from rocket_rides.words import count, number, printable
from watch.facts import Database, Happened, Log
from watch.feed import Event
from watch.naming import MOST_NAMED, named


def lost(at: datetime, before: Log, now: Log) -> Iterator[Event]:
    """What the log lost, other than by trimming: that changes neither its last id nor `added`."""
    if not before.length:
        return
    begun_anew = now.added is not None and before.added is not None and now.added < before.added
    if begun_anew or now.last_id == START:
        had = number(before.length)
        yield Event(at, "fault", f"the log lost its entries: {had} at the last look")
    elif as_numbers(now.last_id) < as_numbers(before.last_id):
        yield Event(at, "fault", "the log lost its newest entries")


def set_aside(before: Database, now: Database) -> dict[str, int]:
    """How many entries each reader with a checkpoint has set aside between two looks."""
    known = {(reader.kind, reader.name): reader.counts for reader in before.readers}
    return {
        reader.name: rise(earlier.entries_set_aside, reader.counts.entries_set_aside)
        for reader in now.readers
        if reader.counts and (earlier := known.get((reader.kind, reader.name)))
    }


def aside(
    at: datetime, database: Database, kept: Sequence[Happened], counted: Mapping[str, int]
) -> Iterator[Event]:
    """Entries set aside, in a few lines: as many as were counted, else those that are still listed.

    A group has no counter, nor is there one to compare with at the first look.
    """
    listed: dict[str, list[Happened]] = {}
    for each in kept:
        if each.set_aside_by:
            listed.setdefault(each.set_aside_by, []).append(each)
    names = {reader.name: named(reader) for reader in database.readers}
    told = {who: counted.get(who, len(those)) for who, those in listed.items()}
    told = {who: many for who, many in {**counted, **told}.items() if many}
    when = {who: listed[who][-1].at if who in listed else at for who in sorted(told)}
    for who in list(when)[:MOST_NAMED]:
        why = f": {printable(listed[who][-1].words)}" if who in listed else ""
        entries = "an entry" if told[who] == 1 else count(told[who], "entry")
        words = f"{names.get(who) or printable(who)} set {entries} aside{why}"
        yield Event(when[who], "fault", words)
    if others := list(when)[MOST_NAMED:]:
        more = count(len(others), "more reader")
        yield Event(max(when[who] for who in others), "fault", f"{more} set entries aside")


def rise(before: int, now: int) -> int:
    """Of a counter; one that fell was restored to an earlier time."""
    return max(now - before, 0)
