"""The ledger: blocks that do not follow one another, or do not add up, are not believed."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from analytics.ledger import Ledger, Owner
from analytics.pieces import BLOCK, Piece

LAST = 3 * BLOCK


def nights() -> Ledger:
    """Three of one ride each, which fill a block each."""
    ledger = Ledger()
    for number in (1, 2, 3):
        upto = number * BLOCK
        ledger = ledger.extended(upto, [Piece(upto, upto, 1, Decimal(number))])
    return ledger


def read_back(ledger: dict[str, Any]) -> Ledger:
    return msgspec.json.decode(msgspec.json.encode(ledger), type=Ledger)


def with_block(number: int, **changes: Any) -> dict[str, Any]:
    """The ledger as it is written down, with another block."""
    ledger: dict[str, Any] = msgspec.to_builtins(nights(), str_keys=True)
    ledger["blocks"][number] |= changes
    return ledger


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"after": 2 * BLOCK - 1}, f"{2 * BLOCK} and continues after ride {2 * BLOCK - 1}"),
        ({"after": 2 * BLOCK + 1}, f"{2 * BLOCK} and continues after ride {2 * BLOCK + 1}"),
        ({"upto": LAST - 1}, "does not add up"),
        ({"upto": LAST + 1}, "does not add up"),
        ({"rides": 2}, "does not add up"),
        ({"distance": "3.001"}, "does not add up"),
    ],
)
def test_blocks_follow_one_another_end_where_the_ledger_does_and_come_to_its_total(
    changes: dict[str, Any], said: str
) -> None:
    """Each time, all else is right."""
    with pytest.raises(msgspec.ValidationError, match=said):
        read_back(with_block(2, **changes))


def test_an_owner_stands_once_and_the_newest_is_the_last() -> None:
    one, other = Owner(10, "1-1", "a"), Owner(20, "1-1", "b")
    ledger = nights()
    for run, owner in enumerate([one, other, msgspec.structs.replace(one, upto=LAST)], start=1):
        ledger = ledger.after_run(run, owner)
    assert ledger.owners == [other, Owner(LAST, "1-1", "a")]
    assert ledger.run == 3
