"""An entry of the log is read as a record, exactly, or refused with a reason."""

from decimal import Decimal

import pytest

from rocket_rides.log import LARGEST_ID, Invalid, Record, decode


def fields(data: str, prev: str = "0", term: str = "t") -> list[bytes]:
    return [b"data", data.encode(), b"prev", prev.encode(), b"term", term.encode()]


def test_an_entry_is_a_record() -> None:
    read = decode(fields('{"id": 521, "distance": 539.837}', "520", "5f3a"))
    assert read == Record(521, 520, Decimal("539.837"), b"5f3a")


def test_fields_in_another_order_and_others_beside_them_do_no_harm() -> None:
    entry = [b"x", b"y", b"prev", b"3", b"data", b'{"extra": [1], "distance": 5, "id": 4}']
    assert decode(entry) == Record(4, 3, Decimal(5), b"")


@pytest.mark.parametrize("written", ["999999999.999", "0.001", "5", "5.000", "1e2", "0.1"])
def test_a_distance_keeps_every_digit(written: str) -> None:
    assert decode(fields(f'{{"id": 1, "distance": {written}}}')).distance == Decimal(written)


def test_the_largest_id_is_one_that_postgres_can_hold() -> None:
    largest = f'{{"id": {LARGEST_ID}, "distance": 5}}'
    assert decode(fields(largest, str(LARGEST_ID - 1))).id == 2**63 - 1
    with pytest.raises(Invalid, match="out of range"):
        decode(fields(f'{{"id": {LARGEST_ID + 1}, "distance": 5}}'))


RIDE = '{"id": 5, "distance": 5}'


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ([b"data", RIDE.encode()], "no field 'prev'"),
        ([b"prev", b"0"], "no field 'data'"),
        ([], "no field 'data'"),
        ([b"data"], "no field 'data'"),
        (fields(RIDE, "5"), "id 5 is not above prev 5"),
        (fields(RIDE, "-1"), "prev is not a record's id"),
        (fields(RIDE, "1_0"), "prev is not a record's id"),
        (fields(RIDE, ""), "prev is not a record's id"),
        (fields(RIDE, "1" * 20), "prev is not a record's id"),
        (fields("ride"), "data is not a record"),
        (fields("[1, 5]"), "data is not a record"),
        (fields("[" * 100_000), "data is not a record"),
        (fields('{"id": 5, "x": ' + "[" * 100_000), "data is not a record"),
        ([b"data", b'{"id": 5, "distance": 5, "who": "\xff"}', b"prev", b"4"], "not a record"),
        (fields('{"id": 5}'), "data is not a record"),
        (fields('{"id": "5", "distance": 5}'), "data is not a record"),
        (fields('{"id": true, "distance": 5}'), "data is not a record"),
        (fields('{"id": 5.5, "distance": 5}'), "data is not a record"),
        (fields('{"id": 5, "distance": "5"}'), "distance is not a decimal number"),
        (fields('{"id": 5, "distance": null}'), "distance is not a decimal number"),
        (fields('{"id": 5, "distance": NaN}'), "data is not a record"),
        (fields('{"id": 5, "distance": 1e999}'), "is out of range"),
        (fields('{"id": 5, "distance": 1.' + "0" * 9999 + "1}"), "is out of range"),
        (fields('{"id": 5, "distance": 0.0001}'), "distance 0.0001 is out of range"),
        (fields('{"id": 5, "distance": 0}'), "distance 0 is out of range"),
        (fields('{"id": 5, "distance": -5}'), "distance -5 is out of range"),
        (fields('{"id": 5, "distance": 1000000000}'), "is out of range"),
    ],
)
def test_what_is_no_record_is_refused_with_a_reason(entry: list[bytes], reason: str) -> None:
    with pytest.raises(Invalid) as refusal:
        decode(entry)
    assert reason in str(refusal.value)
