"""Distances: what a person writes, to the millimetre, and sums that never round."""

from decimal import Decimal, Inexact

import pytest

from rocket_rides.distance import EXACT, MOST, is_exact, parse


@pytest.mark.parametrize(
    "written", ["0", "-5", "0.0005", "999999999.9995", "1e9", "1e999999999999999999999"]
)
def test_what_no_ride_can_have_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="must be more than 0 and at most"):
        parse(written)


@pytest.mark.parametrize(
    ("metres", "holds"),
    [
        ("0.001", True),
        ("5.0000", True),
        (str(MOST), True),
        ("0", False),
        ("-1", False),
        ("0.0001", False),
        ("1000000000", False),
    ],
)
def test_a_value_is_exact_when_the_column_holds_it_without_rounding(
    metres: str, holds: bool
) -> None:
    assert is_exact(Decimal(metres)) == holds


@pytest.mark.proves("exact")
def test_a_sum_that_would_round_raises() -> None:
    largest = Decimal("9" * 35 + ".999")  # NUMERIC(38,3)
    assert EXACT.add(largest, Decimal("0.001")) == Decimal("1" + "0" * 35)
    with pytest.raises(Inexact):
        EXACT.add(largest, Decimal("1e-10"))
