"""What happened between two looks, in words: the differences of two Facts.

The counters are as exact as the totals, so what happened while nobody looked is told all the same.
A counter that fell was restored to an earlier time, and says nothing.

What is the same every second (re-sends, receipts, crashes on purpose) is no event: the page shows
its counters.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal

from rocket_rides.words import count, metres, number, printable
from watch.facts import Counts, Database, Facts, Happened, Log, Reader, Server
from watch.feed import Event
from watch.log_events import aside, lost, rise, set_aside
from watch.naming import MOST_NAMED, named
from watch.verdict import ABSENT

# What Postgres keeps is asked for as long; then it may be forgotten that it was told.
KEPT_FOR = timedelta(minutes=30)


class Events:
    """Tells what is new in each Facts. What Postgres kept is told at the first look at it."""

    def __init__(self) -> None:
        self._facts: Facts | None = None
        self._database: Database | None = None  # the last one that was seen
        self._log: Log | None = None  # likewise
        self._told: set[Happened] = set()
        self._missing: set[str] = set()

    def since_last(self, facts: Facts) -> list[Event]:
        """The events since the last call, the oldest first."""
        events: list[Event] = list(self._servers(facts))
        if facts.log:
            if self._log:
                events += lost(facts.at, self._log, facts.log)
            self._log = facts.log
        if facts.database:
            events += self._kept(facts.at, facts.database)
            if self._database:
                events += _between(facts.at, self._database, facts.database)
            events += self._presence(facts.at, facts.database)
            self._database = facts.database
        self._facts = facts
        return sorted(events, key=lambda event: event.at)

    def _servers(self, facts: Facts) -> Iterator[Event]:
        before = self._facts
        for name, now, earlier in (
            ("Postgres", facts.postgres, before.postgres if before else None),
            ("Redis", facts.redis, before.redis if before else None),
        ):
            if not now.up and (earlier is None or earlier.up):
                yield Event(facts.at, "fault", _away(name, now))
            elif now.up and earlier is not None and not earlier.up:
                yield Event(facts.at, "healed", f"{name} is back")

    def _kept(self, at: datetime, database: Database) -> Iterator[Event]:
        """Leads, resets, reconciliations, entries set aside: all at first, then what is new."""
        new = sorted(set(database.happened) - self._told, key=lambda happened: happened.at)
        self._told = {each for each in self._told if each.at > at - KEPT_FOR}
        self._told |= set(database.happened)
        for each in new:
            if not each.set_aside_by:
                yield Event(each.at, "news", printable(each.words))
        counted = set_aside(self._database, database) if self._database else {}
        yield from aside(at, database, new, counted)

    def _presence(self, at: datetime, database: Database) -> Iterator[Event]:
        """Who is missing, once that is no mere restart, and who is back."""
        missing = {who for who, seconds in _missing_for(database) if seconds >= ABSENT}
        for who in sorted(missing - self._missing):
            yield Event(at, "fault", f"{who} is not at work")
        known = dict(_missing_for(database))
        there = {who for who, seconds in known.items() if not seconds}
        for who in sorted(there & self._missing):
            yield Event(at, "healed", f"{who} is at work again")
        # Names that are gone are forgotten.
        self._missing = missing | (self._missing & known.keys() - there)


def _between(at: datetime, before: Database, now: Database) -> Iterator[Event]:
    if now.rides.last_sent < before.rides.last_sent:
        yield Event(
            at,
            "fault",
            f"Postgres went back to an earlier time: from ride {number(before.rides.last_sent)}"
            f" to ride {number(now.rides.last_sent)}",
        )
    known = {(reader.kind, reader.name): reader for reader in before.readers}
    for reader in now.readers:
        earlier = known.get((reader.kind, reader.name))
        if earlier is None:
            yield Event(at, "news", f"{named(reader)} reads the log from now on")
        elif earlier.counts and reader.counts:
            yield from _counted(at, reader, earlier.counts, reader.counts)
    for gone in known.keys() - {(reader.kind, reader.name) for reader in now.readers}:
        yield Event(at, "news", f"{named(known[gone])} is no reader of the log any more")
    yield from _agreement(at, before, now)
    yield from _rollup(at, before, now)
    yield from _receipts(at, before, now)


def _missing_for(database: Database) -> Iterator[tuple[str, float]]:
    """Who should be at work, and for how many seconds nobody has been seen to be."""
    for who, lead in (("the streamer", database.streamer), ("the rollup", database.rollup.lead)):
        yield who, 0 if lead.leads else lead.vacant_seconds
    for reader in database.readers:
        if reader.is_ours and reader.kind != "rollup":
            yield named(reader), 0 if reader.processes else reader.absent_seconds


def _counted(at: datetime, reader: Reader, before: Counts, now: Counts) -> Iterator[Event]:
    name = named(reader)
    if gaps := rise(before.gaps_healed, now.gaps_healed):
        rides = rise(before.rides_healed, now.rides_healed)
        distance = max(now.distance_healed - before.distance_healed, Decimal(0))
        healed = f"{count(rides, 'ride')}, {metres(distance)} m"
        times = "a gap" if gaps == 1 else f"{number(gaps)} gaps"
        yield Event(at, "healed", f"{name} healed {times}: {healed}")
    if strange := rise(before.unbelieved_entries, now.unbelieved_entries):
        entries = "an entry" if strange == 1 else count(strange, "entry")
        yield Event(at, "news", f"{name} left out {entries} that this database never committed")


def _agreement(at: datetime, before: Database, now: Database) -> Iterator[Event]:
    if before.agreement is None or now.agreement is None:
        return
    if before.agreement.agree and not now.agreement.agree:
        totals = sorted(now.agreement.totals.values())
        yield Event(
            at,
            "fault",
            f"the totals disagree by {metres(totals[-1] - totals[0])} m"
            f" at ride {number(now.agreement.ride)}",
        )
    elif now.agreement.agree and not before.agreement.agree:
        yield Event(at, "healed", f"the totals agree again, at ride {number(now.agreement.ride)}")


def _rollup(at: datetime, before: Database, now: Database) -> Iterator[Event]:
    if minutes := rise(before.rollup.minutes_set_aside, now.rollup.minutes_set_aside):
        yield Event(at, "fault", f"the rollup set aside {count(minutes, 'minute')}")
    elif rise(now.rollup.minutes_set_aside, before.rollup.minutes_set_aside):
        yield Event(at, "healed", "the rollup took up minutes that it had set aside")


def _receipts(at: datetime, before: Database, now: Database) -> Iterator[Event]:
    known = {letter.ride: letter for letter in before.receipts.newest_dead}
    new = [
        letter
        for letter in now.receipts.newest_dead
        if letter.ride not in known or known[letter.ride].since < letter.since
    ]
    # A list that holds only the newest shows older ones again when those are gone.
    latest = max((letter.since for letter in known.values()), default=None)
    new = [letter for letter in new if latest is None or letter.since > latest]
    for letter in sorted(new, key=lambda letter: letter.since)[:MOST_NAMED]:
        yield Event(
            at,
            "fault",
            f"the receipt of ride {number(letter.ride)} is dead: {printable(letter.reason)}",
        )
    if len(new) > MOST_NAMED:
        yield Event(at, "fault", f"{count(len(new) - MOST_NAMED, 'more receipt')} died")
    if swept := rise(before.receipts.swept, now.receipts.swept):
        lost = f"{count(swept, 'ride')} that the log had lost"
        yield Event(at, "healed", f"the receipts' sweep took up {lost}")


def _away(name: str, server: Server) -> str:
    return f"{name} is away: {printable(server.reason)}" if server.reason else f"{name} is away"
