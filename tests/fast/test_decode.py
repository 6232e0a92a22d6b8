"""An entry of the log is read as a record, or refused with a reason, and so is a ride's data."""

from decimal import Decimal

import pytest

from consumers.rides import Ride, ride
from tests.support.entries import fields
from unified_log.log import LARGEST_ID, Invalid, Record, decode

DATA = '{"id": 5, "distance": 5}'
NO_KEY = "; 'id' must be the record's position, not your key"


def read(data: str | bytes) -> Ride:
    """The ride of a record whose position is 5."""
    return ride(Record(5, b"ride.create", data.encode() if isinstance(data, str) else data, 4))


def test_an_entry_is_a_record_whatever_its_data() -> None:
    record = decode(fields(521, "stars", 520, "5f3a", "rating.create"))
    assert record == Record(521, b"rating.create", b"stars", 520, b"5f3a")


def test_fields_in_another_order_and_others_beside_them_do_no_harm() -> None:
    entry = [b"x", b"y", b"prev", b"3", b"data", b"{}", b"type", b"ride.create", b"id", b"4"]
    assert decode(entry) == Record(4, b"ride.create", b"{}", 3, b"")


def test_a_ride_may_have_more_than_is_known_today() -> None:
    assert read('{"extra": [1], "distance": 539.837, "id": 5}') == Ride(5, Decimal("539.837"))


@pytest.mark.parametrize("written", ["999999999.999", "0.001", "5", "5.000", "1e2", "0.1"])
def test_a_distance_keeps_every_digit(written: str) -> None:
    assert read(f'{{"id": 5, "distance": {written}}}').distance == Decimal(written)


def test_the_largest_id_is_one_that_postgres_can_hold() -> None:
    assert decode(fields(LARGEST_ID, DATA, LARGEST_ID - 1, "t")).id == 2**63 - 1
    with pytest.raises(Invalid, match="out of range"):
        decode(fields(LARGEST_ID + 1, DATA, 0, "t"))


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (fields(5, DATA, 4, "t")[:6], "no field 'prev'"),
        (fields(5, DATA, 4, "t")[2:], "no field 'id'"),
        ([b"id", b"5", b"data", DATA.encode(), b"prev", b"4"], "no field 'type'"),
        ([b"id", b"5", b"type", b"ride.create", b"prev", b"4"], "no field 'data'"),
        ([], "no field 'id'"),
        ([b"id"], "no field 'id'"),
        (fields(5, DATA, 5, "t"), "id 5 is not above prev 5"),
        (fields(5, DATA, -1, "t"), "prev is not a position"),
        (fields(5, DATA, "1_0", "t"), "prev is not a position"),
        (fields(5, DATA, "", "t"), "prev is not a position"),
        (fields(5, DATA, "1" * 20, "t"), "prev is not a position"),
        (fields("5.0", DATA, 4, "t"), "id is not a position"),
    ],
)
def test_what_is_no_record_is_refused_with_a_reason(entry: list[bytes], reason: str) -> None:
    with pytest.raises(Invalid) as refusal:
        decode(entry)
    assert reason in str(refusal.value)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("ride", "data is not a ride"),
        ("[1, 5]", "data is not a ride"),
        ("[" * 100_000, "data is not a ride"),
        ('{"id": 5, "x": ' + "[" * 100_000, "data is not a ride"),
        (b'{"id": 5, "distance": 5, "who": "\xff"}', "data is not a ride"),
        ('{"id": 5}', "data is not a ride"),
        ('{"id": "5", "distance": 5}', NO_KEY),
        ('{"distance": 5}', NO_KEY),
        ('{"id": true, "distance": 5}', "data is not a ride"),
        ('{"id": 5.5, "distance": 5}', "data is not a ride"),
        ('{"id": 6, "distance": 5}', f"data is of ride 6, not 5{NO_KEY}"),
        ('{"id": 5, "distance": "5"}', "distance is not a decimal number"),
        ('{"id": 5, "distance": null}', "distance is not a decimal number"),
        ('{"id": 5, "distance": NaN}', "data is not a ride"),
        ('{"id": 5, "distance": 1e999}', "is out of range"),
        ('{"id": 5, "distance": 1.' + "0" * 9999 + "1}", "is out of range"),
        ('{"id": 5, "distance": 0.0001}', "distance 0.0001 is out of range"),
        ('{"id": 5, "distance": 0}', "distance 0 is out of range"),
        ('{"id": 5, "distance": -5}', "distance -5 is out of range"),
        ('{"id": 5, "distance": 1000000000}', "is out of range"),
    ],
)
def test_what_is_no_ride_is_refused_with_a_reason(data: str | bytes, reason: str) -> None:
    with pytest.raises(Invalid) as refusal:
        read(data)
    assert reason in str(refusal.value)
