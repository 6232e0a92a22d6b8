"""Whatever is written as a distance: what fractions say of it, to the millimetre."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rocket_rides.distance import MOST, is_exact, parse
from tests.support.properties import always

MOST_MM = int(MOST * 1000)
NUMBERS = st.from_regex(
    r"[+-]?(?:[0-9]{1,13}(?:\.[0-9]{0,8})?|\.[0-9]{1,8})(?:[eE][+-]?[0-9]{1,2})?", fullmatch=True
)
METRES = st.integers(1, MOST_MM).map(lambda mm: Decimal(mm).scaleb(-3))


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
