"""The report for programs: one JSON object, distances as numbers with all of their digits.

    started_at      when the run began, RFC 3339
    run             the id of the run's row in `runs`, or null
    status          agreed, wrong (nothing waits for a decision) or held (a person decides)
    agrees          true when every total, the warehouse and all that is proved are right
    repairing       false with --check
    reconciliation  the id of the run's row in `reconciliations`, or null
    position        everything up to this position of the log was compared
    last_ride_id    the last ride up to there
    total, new      {rides, distance}: all rides, and those that were new to the warehouse
    consumers       [{name, position, total_distance, exact_distance, drift, stray, wrong,
                    reset, rides, exact_rides, held_out_rides, held_out_distance, first_held_out,
                    recounts}]: drift is the total and what it holds out, less exact; stray is true
                    for a checkpoint past every record sent; reset is true when a reset was
                    requested; rides is how many it has counted; first_held_out is a position, or
                    null; recounts is true while it is made anew, and then it is not called wrong
    findings        [{kind, part, held, about, key}], those about rides also {after, upto,
                    differing, rides: [{id, postgres, warehouse}]}, the first ten, each side
                    {created_at, distance} or null where it lacks the ride; key tells a finding
                    from others; one of the kind reader_recounts is under way, and not wrong;
                    days, and stretches [[after, upto]] of receipts, if there: the next run looks
                    at these again
    verdicts        {part: agreed, wrong or held}: totals, readers, warehouse, records, ...
    mismatches      [{after, upto, minute, warehouse, postgres, difference}]: rides with
                    after < id <= upto, if minute is not null those of that minute alone; the last
                    three are {rides, distance}, the difference is warehouse less Postgres
    rollup          {upto, minutes, wrong, set_aside, agrees}, or null if nobody looked; minutes are
                    those that were compared, without a ride above `upto`; set_aside is how many
                    the rollup itself lacks; wrong is [{minute, rolled_up, exact}], the last two are
                    {rides, distance}, and rolled_up is null for a missing minute
    receipts        {upto, rides, missing, strange, agrees}, or null: missing rides have no outcome,
                    strange ones have a receipt and don't exist; each is {rides, ids}, how many
                    there are, and the lowest of them
    outbox          {staged, sent, orphans, different, agrees}, or null: {rides, ids} of the records
                    at or below last_sent, without a row, with another distance than their ride's
    ratings         {consumers, changed, agrees}, or null: [{name, position, ratings, stars, stray,
                    exact_ratings, exact_stars, held_out_ratings, held_out_stars,
                    first_held_out, recounts}], as of a total; the exact ones are Spark's; changed
                    are blocks of ratings that an earlier run has added up otherwise
    closings        [{id, position, rides, distance, closed_at, outcome}]: what is closed, not
                    reopened; outcome is a sentence's end, such as agrees
    proves_from     the one of these from which on this run proves the totals; null: from the first
                    ride
    requested       true when the repair of minutes, receipts or ratings was requested
    verified        how many blocks of the warehouse were compared with Postgres, ride by ride
    rides_reread    the rides in these
    notes           sentences for a person, which may change
    seconds         how long the run took

Fields may be added; those above keep their names and meanings. Distances are in metres, to the
millimetre, up to 38 digits: read them as decimals (Python: `json.load(..., parse_float=Decimal)`).
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from analytics.result import (
    OutboxVerdict,
    RatingsVerdict,
    ReceiptsVerdict,
    Result,
    RollupVerdict,
)

LEFT_OUT = {
    "proved",
    "proved_before",
    "lowest_ride_id",
}  # only the next run and the requests use these
_encode = msgspec.json.Encoder(decimal_format="number").encode


def as_json(result: Result) -> bytes:
    """The run as indented JSON."""
    content = {
        "started_at": result.started_at,
        "run": result.run,
        "status": result.status,
        "agrees": result.agrees,
        "repairing": result.repairing,
        "reconciliation": result.reconciliation,
        "position": result.position,
        "last_ride_id": result.last_ride_id,
        "total": _named(result.total),
        "new": _named(result.new),
        "consumers": [
            {
                **consumer._asdict(),
                "drift": consumer.drift,
                "wrong": consumer.wrong,
                "reset": consumer.name in result.resets,
            }
            for consumer in result.consumers
        ],
        "mismatches": [
            {**_named(mismatch), "difference": _named(mismatch.difference)}
            for mismatch in result.mismatches
        ],
        "findings": [finding.as_json() for finding in result.findings],
        "verdicts": result.verdicts,
        "rollup": _proof(result.rollup),
        "receipts": _proof(result.receipts),
        "outbox": _proof(result.outbox),
        "ratings": _proof(result.ratings),
        "closings": [_named(each) for each in result.closings],
        "proves_from": _named(result.proves_from),
        "requested": result.requested,
        "verified": result.verified,
        "rides_reread": result.rides_reread,
        "notes": result.notes,
        "seconds": round(result.seconds, 3),
    }
    return msgspec.json.format(_encode(content), indent=2) + b"\n"


def _proof(
    verdict: RollupVerdict | ReceiptsVerdict | OutboxVerdict | RatingsVerdict | None,
) -> Any:
    if verdict is None:
        return None
    return _fields(vars(verdict)) | {"agrees": verdict.agrees}


def _named(value: Any) -> Any:
    """Named tuples as objects, at any depth: msgspec would write them as arrays."""
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    if hasattr(value, "_asdict"):
        return _fields(value._asdict())
    return [_named(each) for each in value] if isinstance(value, list | tuple) else value


def _fields(of: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _named(value) for name, value in of.items() if name not in LEFT_OUT}
