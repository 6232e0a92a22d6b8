"""The report on the terminal after a run: plain text, exact numbers, the verdict last."""

from collections.abc import Iterator, Sequence

from analytics.report.proofs import clauses, moment, proofs, whose
from analytics.report.sentences import closed, outcome, rides_of, verdict, ways_out
from analytics.result import Result, Tally
from rocket_rides.words import metres, signed
from unified_log.words import aligned, count, number, plain, printable

Row = Sequence[str]


def as_text(result: Result) -> str:
    """The run in lines of up to 100 columns; long names and notes make them longer."""
    parts = [
        result.notes,
        list(consumers(result)),
        list(proved(result)),
        list(closings(result)),
        list(mismatches(result)),
        list(found(result)),
        list(summary(result)),
        [verdict(result, *clauses(result))],
    ]
    return plain("\n\n".join("\n".join(part) for part in parts if part)) + "\n"


def consumers(result: Result) -> Iterator[str]:
    """A line for each consumer, with its outcome."""
    if not result.consumers:
        yield "No consumers: none has started yet."
        return
    rows = [("consumer", "position", "its total, m", "exact total, m", "drift, m", "")]
    rows += [
        (
            printable(consumer.name),
            str(consumer.position),
            metres(consumer.total_distance),
            metres(consumer.exact_distance),
            signed(consumer.drift),
            outcome(result, consumer),
        )
        for consumer in result.consumers
    ]
    yield from aligned(rows, "<>>>><")


def proved(result: Result) -> Iterator[str]:
    """A line for the rollup, receipts, outbox and ratings, and then what is wrong with them."""
    rows, named = [("beside the totals", "compared", "")], []
    for proof in proofs(result):
        rows.append((proof.name, proof.looked_at, proof.outcome))
        named += proof.named
    if len(rows) > 1:
        yield from aligned(rows, "<<<")
    for sentence, which in named:
        yield sentence
        yield from (f"  {one}" for one in which)


def closings(result: Result) -> Iterator[str]:
    """A line for each period that is closed."""
    if not result.closings:
        return
    rows = [("closing", "up to position", "its rides", "its total, m", "closed", "")]
    rows += [
        (
            str(each.id), number(each.position), number(each.rides), metres(each.distance),
            moment(each.closed_at), each.outcome,
        )
        for each in result.closings
    ]  # fmt: skip
    yield from aligned(rows, ">>>><<")
    yield closed(result)


def mismatches(result: Result) -> Iterator[str]:
    """The ranges of rides on which the warehouse and Postgres disagree."""
    if not result.mismatches:
        return
    yield "The warehouse and Postgres disagree:"
    for mismatch in result.mismatches:
        yield whose(mismatch)
        rows = [
            ("  warehouse", *rides_and_metres(mismatch.warehouse)),
            ("  Postgres", *rides_and_metres(mismatch.postgres)),
            (
                "  difference",
                f"{mismatch.difference.rides:+,}" if mismatch.difference.rides else "0",
                f"{signed(mismatch.difference.distance)} m",
            ),
        ]
        yield from aligned(rows, "<>>")


def found(result: Result) -> Iterator[str]:
    """What was found, with the rides that it is about, and what a person can do."""
    for finding in result.findings:
        what = "Under way" if finding.is_under_way else "Held" if finding.held else "Found"
        yield f"{what}: {finding.about}"
        yield from (f"  {ride}" for ride in rides_of(finding))
    yield from ways_out(result)


def summary(result: Result) -> Iterator[str]:
    """The whole history, and what the run read and checked."""
    if not result.total.rides:
        yield "No rides yet."
    else:
        history = f"all of history, up to position {result.position}"
        rows = [
            (history, *rides_and_metres(result.total)),
            ("new to the warehouse", *rides_and_metres(result.new)),
        ]
        yield from aligned(rows, "<>>")
    yield (
        f"Compared {count(result.rides_reread, 'old ride')} with Postgres,"
        f" in {count(result.verified, 'block')}; {result.seconds:.1f} seconds in all."
    )


def rides_and_metres(of: Tally) -> Row:
    """Two cells: the rides, the distance."""
    return count(of.rides, "ride"), f"{metres(of.distance)} m"
