"""The report for programs: one JSON object, distances as numbers with all of their digits.

    started_at      when the run began, RFC 3339
    agrees          true when every total and the warehouse are right
    repairing       false with --check
    reconciliation  the id of the run's row in `reconciliations`, or null
    last_ride_id    everything up to this ride was compared
    total, new      {rides, distance}: all rides, and those that were new to the warehouse
    days            [{day, rides, distance}], by UTC date, oldest first
    consumers       [{name, last_ride_id, total_distance, exact_distance, drift, stray, wrong,
                    reset}]: drift is total less exact; stray is true for a checkpoint past every
                    ride sent; reset is true when a reset was requested
    mismatches      [{after, upto, warehouse, postgres, difference}]: rides with after < id <= upto;
                    the last three are {rides, distance}, the difference is warehouse less Postgres
    verified        how many ranges of the warehouse were checked against Postgres
    notes           sentences for a person, which may change
    seconds         how long the run took

Fields may be added; those above keep their names and meanings. Distances are in metres, to the
millimetre, up to 38 digits: read them as decimals (Python: `json.load(..., parse_float=Decimal)`).
"""

from typing import Any

import msgspec

from analytics.result import Compared, Mismatch, Result

_encode = msgspec.json.Encoder(decimal_format="number").encode


def as_json(result: Result) -> bytes:
    """The run as indented JSON."""
    content = {
        "started_at": result.started_at,
        "agrees": result.agrees,
        "repairing": result.repairing,
        "reconciliation": result.reconciliation,
        "last_ride_id": result.last_ride_id,
        "total": result.total._asdict(),
        "new": result.new._asdict(),
        "days": [{"day": day, **tally._asdict()} for day, tally in sorted(result.days.items())],
        "consumers": [_consumer(consumer, result) for consumer in result.consumers],
        "mismatches": [_mismatch(mismatch) for mismatch in result.mismatches],
        "verified": result.verified,
        "notes": result.notes,
        "seconds": round(result.seconds, 3),
    }
    return msgspec.json.format(_encode(content), indent=2) + b"\n"


def _consumer(consumer: Compared, result: Result) -> dict[str, Any]:
    return {
        "name": consumer.name,
        "last_ride_id": consumer.last_ride_id,
        "total_distance": consumer.total_distance,
        "exact_distance": consumer.exact_distance,
        "drift": consumer.drift,
        "stray": consumer.stray,
        "wrong": consumer.wrong,
        "reset": consumer.name in result.resets,
    }


def _mismatch(mismatch: Mismatch) -> dict[str, Any]:
    return {
        "after": mismatch.after,
        "upto": mismatch.upto,
        "warehouse": mismatch.warehouse._asdict(),
        "postgres": mismatch.postgres._asdict(),
        "difference": mismatch.difference._asdict(),
    }
