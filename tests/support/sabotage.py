"""Sabotages: ways to break the code in the test's own process, which the judges must notice."""

import secrets
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from consumers import digest
from consumers.checkpoint import MOVE
from consumers.gaps import Healed
from consumers.receipts.courier import Courier
from consumers.receipts.group import Group
from consumers.receipts.receipt import Receipt
from consumers.receipts.statements import SAVE, SWEEP
from consumers.receipts.verdict import Kind, Verdict
from consumers.rollup.dirty import DirtyMinutes
from consumers.totals.total import Total
from rocket_rides.log import decode
from rocket_rides.terms import Range, Terms
from streamer.barrier import Barrier
from streamer.drain import MOVE_LAST_SENT

Patch = pytest.MonkeyPatch
Sabotage = Callable[[Patch], None]


def skip_the_barrier(patch: Patch) -> None:
    patch.setattr(Barrier, "settled", lambda barrier: barrier._last_drawn())


def count_no_records(patch: Patch) -> None:
    move = but_for(MOVE_LAST_SENT, "records_sent = records_sent + %s", "records_sent = 0 * %s")
    patch.setattr("streamer.drain.MOVE_LAST_SENT", move)


def move_the_checkpoint_alone(patch: Patch) -> None:
    patch.setattr(
        "consumers.totals.total.ADD",
        "SELECT total_distance FROM consumer_states WHERE %s > 0 AND name = %s",
    )


def heal_nothing(patch: Patch) -> None:
    patch.setattr(Total, "heal", lambda _, gap: Healed(gap, 0, Decimal(0)))


def count_again(patch: Patch) -> None:
    def from_the_first(entries: list[Any], position: int, *others: Any) -> digest.Digest:
        at = decode(entries[0].fields).prev if entries else position
        return digest.digest(entries, at, *others)

    patch.setattr("consumers.reader.digest", from_the_first)


def count_no_resends(patch: Patch) -> None:
    patch.setattr("consumers.checkpoint.MOVE", but_for(MOVE, "+ %(skipped)s", ""))


class Anything(dict[bytes, Range]):
    """Takes every term for ours, for all ids that were drawn."""

    def __init__(self, last_drawn: int) -> None:
        self._all = Range(0, last_drawn)

    def get(self, *_: object) -> Range:
        return self._all


def take_every_term_as_ours(patch: Patch) -> None:
    patch.setattr(Terms, "update", lambda _terms, _rows, last_drawn: Anything(last_drawn))


def write_nothing(patch: Patch) -> None:
    patch.setattr("consumers.rollup.indexer.compute", lambda *_: None)


def leave_all_dirty(patch: Patch) -> None:
    patch.setattr(DirtyMinutes, "remove", lambda *_: None)


def keep_the_lease(patch: Patch) -> None:
    patch.setattr("consumers.receipts.statements.SAVE", but_for(SAVE, "lease = NULL,", ""))


def prove_without_a_look(patch: Patch) -> None:
    sweep = but_for(SWEEP, "WHERE NOT EXISTS", "WHERE false AND NOT EXISTS")
    patch.setattr("consumers.receipts.upkeep.SWEEP", sweep)


def acknowledge_nothing(patch: Patch) -> None:
    patch.setattr(Group, "acknowledge", lambda *_: None)


def send_nothing(patch: Patch) -> None:
    async def deliver(*_: object) -> Verdict:
        return Verdict(Kind.DELIVERED, "")

    patch.setattr(Courier, "deliver", deliver)


def send_other_rides(patch: Patch) -> None:
    _send(patch, lambda genuine: genuine._replace(distance=genuine.distance + Decimal("0.001")))


def name_each_attempt_anew(patch: Patch) -> None:
    _send(patch, lambda genuine: genuine._replace(webhook_id=secrets.token_hex()))


def _send(patch: Patch, another: Callable[[Receipt], Receipt]) -> None:
    genuine = Courier.deliver

    async def deliver(courier: Courier, receipt: Receipt, seconds: float) -> Verdict:
        return await genuine(courier, another(receipt), seconds)

    patch.setattr(Courier, "deliver", deliver)


def but_for(statement: str, old: str, new: str) -> str:
    """The statement with one thing in it replaced, which is there."""
    assert statement.count(old) == 1
    return statement.replace(old, new)
