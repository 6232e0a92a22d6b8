"""Distances: whatever is written, to the millimetre; and sums that never round."""

from decimal import Decimal, Inexact
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rocket_rides.distance import EXACT, MOST, is_exact, parse
from tests.support.properties import always

MOST_MM = int(MOST * 1000)
NUMBERS = st.from_regex(
    r"[+-]?(?:[0-9]{1,13}(?:\.[0-9]{0,8})?|\.[0-9]{1,8})(?:[eE][+-]?[0-9]{1,2})?", fullmatch=True
)


def in_millimetres(written: str) -> int:
    """Python rounds fractions half-even, too."""
    return round(Fraction(written) * 1000)


@always
@given(NUMBERS | st.integers(0, 4 * MOST_MM).map(lambda quarters: f"{Decimal(quarters) / 4000}"))
@example("999999999.9995")
@example("999999999.99949999")
@example("0.0005")
@example("0.00050000000000001")
def test_a_number_is_rounded_half_even_or_refused(written: str) -> None:
    if 0 < in_millimetres(written) <= MOST_MM:
        metres = parse(written)
        assert metres == Fraction(in_millimetres(written), 1000)
        assert is_exact(metres)
        assert metres.as_tuple().exponent == -3
    else:
        with pytest.raises(ValueError, match="must be more than 0 and at most"):
            parse(written)


@always
@given(st.text(max_size=12) | st.text("0123456789.eE+-", max_size=12))
@example("1_0")
@example("NaN")
@example("\N{ARABIC-INDIC DIGIT FIVE}")
def test_any_text_is_a_distance_or_refused(text: str) -> None:
    try:
        metres = parse(text)
    except ValueError:
        return
    assert metres == Fraction(in_millimetres(text), 1000)
    assert text.isascii()


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
