"""Whether all is well: what a person should know of, in sentences, and what to do about it.

A *problem* means that something does not work as it is meant to, for longer than it takes to heal.
A *notice* is what waits for a person, and stops nothing.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from math import inf
from typing import Literal

from rocket_rides.words import metres, signed
from unified_log.words import age, count, number, printable
from watch import findings
from watch.facts import MOST, Database, Facts, Reader
from watch.naming import MOST_NAMED, RECEIPTS, ROLLUP, STREAMER, called, listed

# Seconds. Readers are behind by milliseconds, and what was killed, cut or wiped has healed after a
# second or two. What takes longer may not heal by itself.
LATE = 10.0
# A reader that isn't ours may run once a day. It harms nobody, but the log keeps what it lacks.
OTHERS_LATE = 3600.0
# A receiver that fails is asked ever less often; the ten attempts of a receipt take a quarter of an
# hour. After twice that, nobody delivers receipts, or the receiver has been away all the time.
RECEIPTS_LATE = 1800.0

# A process that crashes is back after a second, or two where the machine is busy.
ABSENT = 3.0

# A dump may take a while. What every batch reads stays fast; dead rows fill the disk.
SNAPSHOT_LATE = 1800.0

Kind = Literal["lags", "disagrees", "dead", "away", "drift", "held"]


@dataclass(frozen=True)
class Problem:
    """Something that is not well, in one line for a person, and of which kind."""

    what: str
    kind: Kind


def problems(facts: Facts, absent: float = ABSENT) -> list[Problem]:
    """What is not well, the gravest first; none when all is well.

    A process that has been missing for less than `absent` seconds is taken to be restarting.
    """
    found = [
        Problem(f"{name} can't be used: {server.reason}", "away")
        for name, server in (("Postgres", facts.postgres), ("Redis", facts.redis))
        if not server.up
    ]
    if facts.database:
        found += _wrong(facts.database)
        found += _found(facts.database, facts.at)
        found += _dead(facts.database, absent if facts.redis.up else inf)
        found += _late(facts.database)
    return found


def _few(found: Sequence[Problem], others: str) -> list[Problem]:
    """The first few, and how many `others` there are like them."""
    left_out = len(found) - MOST_NAMED
    if left_out <= 1:  # to say so takes a line as well
        return list(found)
    return [*found[:MOST_NAMED], Problem(f"{number(left_out)} {others}", found[-1].kind)]


def notices(facts: Facts) -> list[str]:
    """What waits for a person, and stops nothing."""
    found = []
    if facts.redis.up and facts.log is None:
        rights = "docs/production.md lists the rights"
        found.append(f"Redis does not let this user look at the log: {rights}")
    if facts.database is None:
        return found
    if dead := facts.database.receipts.dead:
        found.append(
            f"{count(dead, 'receipt', MOST)} could not be delivered:"
            " make dead-letters says why; ARGS=--help says how to have one sent again"
        )
    found += _held_out(facts.database.readers)
    late = [
        f"{called(reader)} ({age(reader.seconds_behind)})"
        for reader in facts.database.readers
        if not reader.is_own and (reader.seconds_behind or 0) > OTHERS_LATE
    ]
    if late:
        found.append(
            f"the log keeps entries for other programs, which are far behind: {listed(late)};"
            " docs/production.md says how to remove a reader"
        )
    if entries := sum(facts.database.malformed_entries.values()):
        unread = count(entries, "entry", MOST)
        found.append(f"{unread} of the log could not be read: the table malformed_entries says why")
    held = facts.database.oldest_snapshot_seconds
    if held is not None and held > SNAPSHOT_LATE:
        found.append(
            f"a snapshot has been held in Postgres for {age(held)}, which keeps all dead rows:"
            " the streamer says by whom"
        )
    run = facts.database.completed_run
    said = findings.failed(facts.database, facts.at), findings.wrong(run) if run else ""
    return [*found, *filter(None, said)]


def _held_out(readers: Sequence[Reader]) -> Iterator[str]:
    """Records that wait for a decision, and who makes his state anew."""
    if records := sum(reader.held_out for reader in readers):
        whose = listed([called(reader) for reader in readers if reader.held_out])
        yield (
            f"{count(records, 'record', MOST)} held out by {whose}:"
            " make held-out says why; ARGS=--help says how to have one tried again"
        )
    if recounting := [called(reader) for reader in readers if reader.recounts]:
        what = "recounts" if len(recounting) == 1 else "recount"
        yield f"{listed(recounting)} {what}, and is compared again afterwards"


def _wrong(database: Database) -> Iterator[Problem]:
    agreement = database.agreement
    if agreement and not agreement.agree:
        shared = Counter(agreement.totals.values())  # what few totals say is probably wrong
        totals = sorted(agreement.totals.items(), key=lambda total: shared[total[1]])
        named = listed([f"{printable(name)} {metres(total)} m" for name, total in totals])
        yield Problem(
            f"the totals disagree at position {number(agreement.ride)}: {named};"
            " make reconcile finds the wrong one, and has it repaired",
            "disagrees",
        )
    for run in database.reconciliations[:1]:
        unrepaired = [
            Problem(
                f"reconciliation {run.id} found the total {printable(name)} off by"
                f" {signed(run.drift.get(name, Decimal(0)))} m;"
                " that consumer repairs it as soon as it runs",
                "drift",
            )
            for name in run.unrepaired
        ]
        yield from _few(unrepaired, "more totals are off, and not yet repaired")


def _found(database: Database, at: datetime) -> Iterator[Problem]:
    """What the last completed run of the reconciliation leaves to a person."""
    told: list[tuple[str, Kind]] = [(findings.late(database, at), "lags")]
    if run := database.completed_run:
        told = [
            (findings.holds(run), "held"),
            (findings.gone(run), "dead"),
            (findings.behind(run), "lags"),
            *told,
        ]
    yield from (Problem(what, kind) for what, kind in told if what)


def _dead(database: Database, absent: float) -> Iterator[Problem]:
    """What is not at work. While a server is away nothing can work, so that is not said as well."""
    gone = {who for who, seconds in database.absent.items() if seconds >= absent}
    if STREAMER in gone:
        yield Problem(
            "no streamer leads, so rides don't reach the log: start python -m streamer", "dead"
        )
    if ROLLUP in gone:
        yield Problem(
            "no rollup leads, so no minute is computed: start python -m consumers.rollup", "dead"
        )
    if RECEIPTS in gone:
        yield Problem("nobody delivers receipts: start python -m consumers.receipts NAME", "dead")
    missing = [
        Problem(f"{called(reader)} is not at work in any process: {_what_to_do(reader)}", "dead")
        for reader in database.readers
        if called(reader) in gone and reader.kind != "rollup"
    ]
    yield from _few(missing, "more consumers are not at work in any process")
    totals = [reader for reader in database.readers if reader.kind == "total"]
    lost = [
        Problem(f"{called(reader)} has lost its total; its output says what to do", "dead")
        for reader in totals
        if reader.total is None
    ]
    yield from _few(lost, "more totals are lost")
    if aside := database.rollup.minutes_set_aside:
        yield Problem(
            f"{count(aside, 'minute', MOST)} could not be computed:"
            " python -m consumers.rollup.set_aside list says why; retry tries again",
            "dead",
        )


def _what_to_do(reader: Reader) -> str:
    if reader.silent_processes:
        return "its process hangs, or was suspended; resume it, or restart it"
    return "start one; or, if it is gone for good, remove it (docs/production.md#remove-a-reader)"


def _late(database: Database) -> Iterator[Problem]:
    staged = database.rides.oldest_staged_seconds
    if staged is not None and staged > LATE:
        yield Problem(f"a record has waited for {age(staged)} to be sent to the log", "lags")
    receipts = database.receipts
    oldest = receipts.oldest_undelivered_seconds
    if oldest is not None and oldest > RECEIPTS_LATE:
        pending = count(receipts.pending, "receipt", MOST)
        yield Problem(f"{pending} to deliver, the oldest for {age(oldest)}", "lags")
    late = [
        Problem(
            f"{called(reader)} {'recounts, and is' if reader.recounts else 'is'}"
            f" {count(reader.records_behind, 'record', MOST)} and"
            f" {age(reader.seconds_behind)} behind",
            "lags",
        )
        for reader in database.readers
        if reader.is_own and (reader.seconds_behind or 0) > LATE
    ]
    yield from _few(late, "more readers are behind")
