"""The report's words and figures."""

from decimal import Decimal

import pytest

from analytics.report.words import count, metres, printable, signed, verdict
from analytics.result import Compared, Mismatch, Result, Tally
from tests.support.results import CHECKED, DRIFTED, EMPTY, MISMATCHED, RIGHT, STRAY, consumer, run

DIGITS = Decimal("12345678901234567890123456789012345.678")


def test_a_distance_is_written_with_all_its_digits() -> None:
    assert metres(DIGITS) == "12,345,678,901,234,567,890,123,456,789,012,345.678"
    assert metres(Decimal(1234)) == "1,234.000"


@pytest.mark.parametrize(
    ("drift", "written"), [("0.001", "+0.001"), ("-1234.5", "-1,234.500"), ("0.000", "0.000")]
)
def test_a_drift_has_its_sign_and_none_has_none(drift: str, written: str) -> None:
    assert signed(Decimal(drift)) == written


@pytest.mark.parametrize(
    ("number", "written"), [(0, "0 rides"), (1, "1 ride"), (-1, "-1 ride"), (2000, "2,000 rides")]
)
def test_one_is_no_plural(number: int, written: str) -> None:
    assert count(number, "ride") == written


def test_a_name_is_left_as_it_is_unless_it_could_move_a_cursor() -> None:
    assert printable("größer 🚀") == "größer 🚀"
    assert printable("a\x1b[2Jb\n") == "a\\x1b[2Jb\\n"


def repaired(*wrong: Compared) -> Result:
    return run(*wrong, resets=[one.name for one in wrong])


DIFFERS = [Mismatch(0, 9, Tally(1, Decimal(1)), Tally(2, Decimal(2)))]


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (RIGHT, "All totals agree."),
        (EMPTY, "There is no consumer to compare."),
        (DRIFTED, "1 of 2 consumers was wrong and will be reset."),
        (repaired(consumer(0, "1"), consumer(1, "2")), "2 of 2 consumers were wrong"),
        (repaired(consumer(0, "1")), "The only consumer was wrong and will be reset."),
        (CHECKED, "1 of 2 consumers is wrong; nothing was repaired (--check)."),
        (STRAY, "1 of 2 consumers is wrong; none will be reset."),
        (
            run(consumer(0, "1"), consumer(1, stray=True), resets=["consumer0"]),
            "2 of 2 consumers are wrong; 1 of them will be reset.",
        ),
        (MISMATCHED, "The warehouse and Postgres disagree: nothing was repaired."),
        (
            run(consumer(0, "1"), mismatches=DIFFERS),
            "disagree, and the only consumer is wrong: nothing was repaired.",
        ),
        (
            run(consumer(0), mismatches=DIFFERS, reconciliation=9),
            "disagreed with Postgres and was rebuilt.",
        ),
        (
            run(consumer(0, "1"), mismatches=DIFFERS, reconciliation=9),
            "was rebuilt, and the only consumer was wrong and will be reset.",
        ),
    ],
)
def test_the_verdict_is_one_sentence(result: Result, said: str) -> None:
    assert said in verdict(result)
    assert verdict(result).find(".") == len(verdict(result)) - 1
