"""The words for what Postgres keeps with its time: in the same style as all other numbers."""

from decimal import Decimal

import pytest

from tests.support.facts import MOMENT
from watch.facts import Happened
from watch.kept import AnyKept, Faulted, Led, Malformed, Ran, Reset

HALF = Decimal("1234567.5")


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        (Led(MOMENT, 12_345), "a streamer took the lead after position 12,345"),
        (
            Reset(MOMENT, "consumer0", 7, HALF, HALF + 1),
            "consumer0 applied the reset of reconciliation 7:"
            " 1,234,567.500 m became 1,234,568.500 m",
        ),
        (Ran(MOMENT, 7, 2000, HALF), "reconciliation 7: 2,000 rides, 1,234,567.500 m"),
    ],
)
def test_numbers_are_written_as_everywhere_else(kept: AnyKept, words: str) -> None:
    assert kept.happened() == Happened(MOMENT, words)


def test_an_entry_that_was_set_aside_names_its_reader_and_the_reason() -> None:
    assert Malformed(MOMENT, "total", "consumer0", "no data").happened() == Happened(
        MOMENT, "consumer0 met a malformed entry: no data", is_fault=True, is_entry=True
    )
    group = Malformed(MOMENT, "receipts", "receipts-1-2", "no data").happened()
    assert group.words == "the receipts' group met a malformed entry: no data"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("failed", "run 7 of the reconciliation failed: Spark is away"),
        ("wrong", "run 7 of the reconciliation found something wrong"),
        ("held", "run 7 of the reconciliation holds what it found until a person decides"),
    ],
)
def test_a_run_that_does_not_agree_is_a_fault(status: str, words: str) -> None:
    told = Faulted(MOMENT, 7, status, "Spark is away").happened()
    assert told == Happened(MOMENT, words, is_fault=True)
