"""What a record of a ride says: the type `ride.create`, whose data is the ride's public JSON."""

from decimal import Decimal
from typing import Annotated, Any

import msgspec

from rocket_rides.distance import MILLIMETRE, MOST, is_exact
from unified_log.log import Data, Invalid, Record, parse_data

TYPE = "ride.create"


class Ride(Data, frozen=True, gc=False):
    """A ride that was taken."""

    distance: Annotated[
        Decimal,
        msgspec.Meta(
            description="Metres, with three decimals at most: read it as a decimal, not a float.",
            examples=[539.837],
            extra_json_schema={"minimum": float(MILLIMETRE), "maximum": float(MOST)},
        ),
    ]


class _Data(Data, frozen=True, gc=False):
    distance: Any  # a number with a point or an exponent is a Decimal, from the text as it is


_decode = msgspec.json.Decoder(_Data, float_hook=Decimal).decode


def ride(record: Record) -> Ride:
    """The ride that a record of TYPE tells of. Raises Invalid when its data is not a ride's."""
    try:
        data = parse_data(record, _decode, "ride")
    except ArithmeticError:  # an exponent beyond what Decimal holds
        raise Invalid("distance is not a decimal number") from None
    distance = Decimal(data.distance) if type(data.distance) is int else data.distance
    if type(distance) is not Decimal:
        raise Invalid("distance is not a decimal number")
    if not is_exact(distance):
        raise Invalid(f"distance {distance:.6g} is out of range")
    return Ride(data.id, distance)
