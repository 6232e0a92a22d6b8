"""The nightly verdict about receipts, told by the numbers of a cell's rides: 1 is the first."""

from dataclasses import replace

from analytics.result import Proved, ReceiptsVerdict, Stretch, WrongRides


def moved(proved: Proved, by: int) -> Proved:
    """The same, where each id is higher by so much."""
    stretches = (Stretch(after + by, upto + by) for after, upto in proved.look_again)
    return Proved(proved.upto + by, tuple(stretches))


def numbered(verdict: ReceiptsVerdict, start: int) -> ReceiptsVerdict:
    """The same, with the rides' numbers instead of their ids."""

    def wrong(rides: WrongRides) -> WrongRides:
        return rides._replace(ids=tuple(ride_id - start for ride_id in rides.ids))

    return replace(
        verdict,
        upto=verdict.upto - start,
        missing=wrong(verdict.missing),
        strange=wrong(verdict.strange),
        proved=moved(verdict.proved, -start),
    )
