"""The facts as text, for a terminal of 80 columns; only sentences may be longer.

Names come from rows and entries that anyone may have written; none of their control characters
reaches the terminal.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from textwrap import wrap

from rocket_rides.words import latency, metres, rate, signed, size
from unified_log.words import DASH, age, aligned, count, number, plain, printable
from watch.facts import MOST, Database, Facts, Lead, Log, Reader
from watch.findings import since
from watch.naming import called, decided, lacking, undecided
from watch.problems import notices, problems
from watch.runs import HELD, RECOUNTS, WRONG

WIDTH = 80
LABEL = 12  # columns
LONGEST_NAME = 16  # beside its numbers; a longer one has a line of its own above them
WELL = "All is well."
UNDER_WAY = "under way"


def screen(facts: Facts) -> list[str]:
    """The lines; the verdict is the last of them, where a shell's prompt leaves it in sight."""
    at = f"{facts.at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    title = f"{'Rocket Rides':{WIDTH - len(at)}}{at}"
    return [plain(line).rstrip() for line in [title, "", *_known(facts), *_verdict(facts)]]


def _known(facts: Facts) -> Iterator[str]:
    """Each part, and an empty line after it."""
    if facts.database:
        yield from (*_flow(facts.database, facts.log), "")
        yield from (*_readers(facts.database.readers), "")
        yield from (*_derived(facts.database, facts.at), "")
    elif facts.log:
        yield from (_log(facts.log), "")


def _verdict(facts: Facts) -> list[str]:
    """A line for each problem, or that all is well; then the notices."""
    lines = [f"NOT WELL: {problem.what}" for problem in problems(facts)] or [WELL]
    return lines + [f"Note: {notice}" for notice in notices(facts)]


def _line(label: str, text: str) -> str:
    return f"{label:{LABEL}}{text}"


def _flow(database: Database, log: Log | None) -> Iterator[str]:
    rides = database.rides
    yield _line(
        "records",
        f"{number(rides.taken)} taken, {rate(rides.per_second)} a second;"
        f" the newest is {number(rides.newest)}",
    )
    oldest = rides.oldest_staged_seconds
    waits = "" if oldest is None else f", the oldest for {age(oldest)}"
    yield _line("outbox", f"{number(rides.staged, MOST)} staged{waits}")
    yield _line("streamer", f"{_led(database.streamer)}; has sent up to {number(rides.last_sent)}")
    yield _log(log) if log else _line("log", DASH)


def _led(lead: Lead) -> str:
    leads = "one leads" if lead.leads else "nobody leads"
    return f"{leads}, {lead.standbys} stand by" if lead.standbys else leads


def _log(log: Log) -> str:
    last = log.last_entry_seconds
    return _line(
        "log",
        count(log.length, "entry")
        + (f", {size(log.bytes)}" if log.bytes else "")
        + (f", the last one {age(last)} ago" if last is not None else ""),
    )


def _readers(readers: Sequence[Reader]) -> Iterator[str]:
    if not readers:
        yield "No reader of the log has started yet."
        return
    names = ["reader", *map(_name, readers)]
    rows = [("at work", "position", "behind", "", "total, m", "latency")]
    rows += [
        (
            number(reader.processes),
            number(reader.ride),
            number(reader.records_behind, MOST),
            age(reader.seconds_behind),
            _counted(reader),
            latency(reader.latency_seconds) if reader.latency_seconds is not None else "",
        )
        for reader in readers
    ]
    short = [name if len(name) <= LONGEST_NAME else "" for name in names]
    beside = [(name, *row) for name, row in zip(short, rows, strict=True)]
    for name, line in zip(names, aligned(beside, "<>>>>>>", WIDTH), strict=True):
        if len(name) > LONGEST_NAME:
            yield name
        yield line


def _counted(reader: Reader) -> str:
    if reader.stars is not None:
        return f"{number(reader.stars)} stars"
    return metres(reader.total) if reader.total is not None else ""


def _name(reader: Reader) -> str:
    both = reader.kind if reader.kind == reader.name else f"{reader.kind} {reader.name}"
    name = printable(both)
    if len(name) <= WIDTH:
        return name
    return f"{name[: WIDTH // 2 - 1]}…{name[-WIDTH // 2 :]}"  # those called alike differ in the end


def _derived(database: Database, at: datetime) -> Iterator[str]:
    agreement, rollup, receipts = database.agreement, database.rollup, database.receipts
    if agreement:
        said = "agree" if agreement.agree else "DISAGREE"
        yield _line("totals", f"{said} at position {number(agreement.ride)}")
    yield from _lacking(database.readers)
    dirty = rollup.dirty_minutes
    yield _line(
        "rollup",
        f"{_led(rollup.lead)}; minutes are right up to position {number(rollup.complete_to)}"
        + (f"; {count(dirty, 'dirty minute')}" if dirty else ""),
    )
    oldest = receipts.oldest_undelivered_seconds
    yield _line(
        "receipts",
        f"{count(receipts.workers, 'worker')}: {decided(receipts)}"
        + (f"; {number(receipts.swept)} swept" if receipts.swept else ""),
    )
    yield _line(
        "",
        undecided(receipts) + (f", the oldest for {age(oldest)}" if oldest is not None else ""),
    )
    for run in database.reconciliations[:1]:
        drifts = ", ".join(f"{printable(name)} {signed(off)} m" for name, off in run.drift.items())
        yield _line(
            "reconciled",
            f"{age((at - run.at).total_seconds())} ago, up to position {number(run.ride)}: "
            + (f"drift of {drifts}" if drifts else "no drift"),
        )
    yield from _runs(database, at)


def _lacking(readers: Sequence[Reader]) -> Iterator[str]:
    """Who recounts, and who holds records out."""
    for label, told in (
        ("recounts", [called(reader) for reader in readers if reader.recounts]),
        ("held out", [f"{called(each)}: {said}" for each in readers if (said := lacking(each))]),
    ):
        for line in wrap("; ".join(told), WIDTH - LABEL):
            yield _line(label, line)
            label = ""


def _runs(database: Database, at: datetime) -> Iterator[str]:
    """What the last completed run has found, and what became of later ones."""
    if now := database.run_under_way:
        yield _line("under way", f"run {now.id}, for {since(now.since, at)}")
    if failed := database.failed_run:
        why = f": {printable(failed.reason)}" if failed.reason else ""
        yield _line("failed", f"run {failed.id}, {since(failed.since, at)} ago{why}")
    if not (run := database.completed_run):
        return
    looked = f"; oldest look {since(run.oldest_look, at)} ago" if run.oldest_look else ""
    yield _line("last run", f"run {run.id} ended {since(run.at, at)} ago: {run.status}{looked}")
    for verdict, parts in run.parts():
        for line in wrap(f"{verdict}: {', '.join(map(printable, parts))}", WIDTH - LABEL):
            yield _line("", line)
    for each in run.findings:
        what = HELD if each.held else UNDER_WAY if each.kind == RECOUNTS else WRONG
        yield _line("finding", f"{what}: {printable(each.about)}")
    if run.more:
        yield _line("", f"and {count(run.more, 'more finding', MOST)}")
