"""What happened between two looks, in words: the differences of two Facts.

The counters are as exact as the totals, so what happened between two looks is told, too. A counter
that fell was restored to an earlier time, and says nothing.

What happens every second (re-sends, receipts, crashes on purpose) is not an event: the page shows
its counters.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal

from rocket_rides.words import metres
from unified_log.words import count, number, printable
from watch.absence import expected
from watch.facts import UP, Counts, Database, Facts, Happened, Log, Reader
from watch.feed import Event, Mood
from watch.naming import MOST_NAMED, named
from watch.problems import ABSENT

# How long an event that Postgres keeps is remembered as told: longer than the statement lists it.
KEPT_FOR = timedelta(minutes=30)

Told = tuple[Mood, str]  # of one moment, in words


class Events:
    """Tells what is new in each Facts. What Postgres kept is told at the first look at it."""

    def __init__(self) -> None:
        self._facts: Facts | None = None
        self._database: Database | None = None  # the last one that was seen
        self._log: Log | None = None  # likewise
        self._told: set[Happened] = set()
        self._missing: set[str] = set()

    def since_last(self, facts: Facts, starting: bool = False) -> list[Event]:
        """The events since the last call, the oldest first.

        While the fleet is `starting`, a server that is not there is no fault.
        """
        events: list[Event] = list(self._servers(facts, starting))
        if facts.log:
            if self._log and self._log.length and facts.log.added < self._log.added:
                had, has = number(self._log.length), number(facts.log.length)
                words = f"the log lost entries: {had} at the last look, {has} now"
                events.append(Event(facts.at, "fault", words))
            self._log = facts.log
        if facts.database:
            events += self._kept(facts.at, facts.database)
            told = [*_between(self._database, facts.database)] if self._database else []
            told += self._presence(facts.database)
            events += [Event(facts.at, mood, words) for mood, words in told]
            self._database = facts.database
        self._facts = facts
        return sorted(events, key=lambda event: event.at)

    def _servers(self, facts: Facts, starting: bool) -> Iterator[Event]:
        before = self._facts
        for name, now, earlier in (
            ("Postgres", facts.postgres, before.postgres if before else UP),
            ("Redis", facts.redis, before.redis if before else UP),
        ):
            if earlier.up and not now.up:
                why = f": {printable(now.reason)}" if now.reason else ""
                if starting:
                    yield Event(facts.at, "news", f"{name} is not ready yet{why}")
                else:
                    yield Event(facts.at, "fault", f"{name} is away{why}")
            elif now.up and not earlier.up:
                yield Event(facts.at, "healed", f"{name} is {'ready' if starting else 'back'}")

    def _kept(self, at: datetime, database: Database) -> Iterator[Event]:
        """Leads, resets, runs, what was malformed or held out: all at first, then what is new."""
        new = sorted(set(database.happened) - self._told, key=lambda happened: happened.at)
        self._told = {each for each in self._told if each.at > at - KEPT_FOR}
        self._told |= set(database.happened)
        malformed = [each for each in new if each.is_entry]
        unnamed = malformed[:-MOST_NAMED]
        for each in new:
            if each not in unnamed:
                mood: Mood = "fault" if each.is_fault else "news"
                yield Event(each.at, mood, printable(each.words))
        if before := self._database:
            was, now = before.malformed_entries.values(), database.malformed_entries.values()
            if (more := rise(sum(was), sum(now)) - len(malformed) + len(unnamed)) > 0:
                yield Event(at, "fault", f"readers met {count(more, 'more malformed entry')}")

    def _presence(self, database: Database) -> Iterator[Told]:
        """Who has been missing for longer than a restart takes, and who is back."""
        known = dict(expected(database))
        for who, is_there in known.items():
            if database.absent.get(who, 0) >= ABSENT and who not in self._missing:
                self._missing.add(who)
                yield "fault", f"{who} is not at work"
            elif is_there and who in self._missing:
                self._missing.remove(who)
                yield "healed", f"{who} is at work again"
        self._missing &= known.keys()  # names that are gone are forgotten


def _between(before: Database, now: Database) -> Iterator[Told]:
    if now.rides.last_sent < before.rides.last_sent:
        yield (
            "fault",
            f"Postgres went back to an earlier time: from position"
            f" {number(before.rides.last_sent)} to {number(now.rides.last_sent)}",
        )
    known = {(reader.kind, reader.name): reader for reader in before.readers}
    for reader in now.readers:
        earlier = known.get((reader.kind, reader.name))
        if earlier is None:
            yield "news", f"{named(reader)} has begun to read the log"
            continue
        if earlier.counts and reader.counts:
            yield from _counted(reader, earlier.counts, reader.counts)
        lacked, lacks = (each.held_out + each.dropped for each in (earlier, reader))
        if counted := rise(lacks, lacked):
            yield (
                "healed",
                f"{named(reader)} counted {count(counted, 'record')} that it had held out",
            )
        if reader.recounts and not earlier.recounts:
            yield "news", f"{named(reader)} recounts"
    for gone in known.keys() - {(reader.kind, reader.name) for reader in now.readers}:
        yield "news", f"{named(known[gone])} no longer reads the log"
    yield from _agreement(before, now)
    yield from _rollup(before, now)
    yield from _receipts(before, now)


def _counted(reader: Reader, before: Counts, now: Counts) -> Iterator[Told]:
    name = named(reader)
    if gaps := rise(before.gaps_healed, now.gaps_healed):
        records = rise(before.records_healed, now.records_healed)
        distance = max(now.distance_healed - before.distance_healed, Decimal(0))
        healed = count(records, "record") + (f", {metres(distance)} m" if distance else "")
        times = "a gap" if gaps == 1 else f"{number(gaps)} gaps"
        yield "healed", f"{name} healed {times}: {healed}"
    if strange := rise(before.entries_ignored, now.entries_ignored):
        entries = "an entry" if strange == 1 else count(strange, "entry")
        yield "news", f"{name} skipped {entries} not committed by our streamer"


def _agreement(before: Database, now: Database) -> Iterator[Told]:
    if before.agreement is None or now.agreement is None:
        return
    if before.agreement.agree and not now.agreement.agree:
        totals = sorted(now.agreement.totals.values())
        off = metres(totals[-1] - totals[0])
        yield "fault", f"the totals disagree by {off} m at position {number(now.agreement.ride)}"
    elif now.agreement.agree and not before.agreement.agree:
        yield "healed", f"the totals agree again, at position {number(now.agreement.ride)}"


def _rollup(before: Database, now: Database) -> Iterator[Told]:
    if minutes := rise(before.rollup.minutes_set_aside, now.rollup.minutes_set_aside):
        yield "fault", f"the rollup set aside {count(minutes, 'minute')}"
    elif rise(now.rollup.minutes_set_aside, before.rollup.minutes_set_aside):
        yield "healed", "the rollup computed minutes that it had set aside"


def _receipts(before: Database, now: Database) -> Iterator[Told]:
    if dead := rise(before.receipts.given_up, now.receipts.given_up):
        new = [each for each in now.receipts.newest_dead if each not in before.receipts.newest_dead]
        newest = max(new, key=lambda letter: letter.since, default=None)
        if newest and dead == 1:
            what = f"the receipt of ride {number(newest.ride)} is dead"
        else:
            what = f"{count(dead, 'receipt')} died{', the last one' if newest else ''}"
        why = f": {printable(newest.reason)}" if newest else ""
        yield "fault", f"{what}{why}"
    if swept := rise(before.receipts.swept, now.receipts.swept):
        lost = f"{count(swept, 'ride')} that the log had lost"
        yield "healed", f"the sweep queued the receipts of {lost}"


def rise(before: int, now: int) -> int:
    """Of a counter; one that fell was restored to an earlier time."""
    return max(now - before, 0)
