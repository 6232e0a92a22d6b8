"""Ways to break the code, in the test's own process or by a trigger: the judges must notice."""

import secrets
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import pytest
from standardwebhooks import Webhook

from consumers import digest
from consumers.gaps import Healed
from consumers.receipts import outcomes
from consumers.receipts.attempts import Known
from consumers.receipts.courier import Courier, Kind, Verdict
from consumers.receipts.group import Group
from consumers.receipts.outcomes import Saved
from consumers.receipts.receipt import Receipt
from consumers.receipts.sweep import Sweep
from consumers.rollup.dirty import DirtyMinutes
from consumers.rollup.generation import Generation
from consumers.rollup.marker import Marker
from consumers.totals.total import Total
from rocket_rides.log import decode
from rocket_rides.receipts import WEBHOOK_ID
from rocket_rides.terms import Range, Terms
from streamer.barrier import Barrier

Patch = pytest.MonkeyPatch
Sabotage = Callable[[Patch], None]


def skip_the_barrier(patch: Patch) -> None:
    patch.setattr(Barrier, "settled", lambda barrier: barrier._last_drawn())


def delete_more_than_was_sent(patch: Patch) -> None:
    # Past the product's own guard too, which compares the number of rows.
    everything = "WITH gone AS (DELETE FROM staged_log_records RETURNING id)"
    patch.setattr("streamer.drain.DELETE_SENT", f"{everything} SELECT FROM gone WHERE id = ANY(%s)")


def move_the_checkpoint_alone(patch: Patch) -> None:
    patch.setattr(
        "consumers.totals.total.ADD",
        "SELECT total_distance FROM consumer_states WHERE %s > 0 AND name = %s",
    )


def heal_nothing(patch: Patch) -> None:
    patch.setattr(Total, "heal", lambda _, gap: Healed(gap, 0, Decimal(0)))


def count_again(patch: Patch) -> None:
    def believe(entries: list[Any], last_ride_id: int, *others: Any) -> digest.Digest:
        at = decode(entries[0].fields).prev if entries else last_ride_id
        return digest.digest(entries, at, *others)

    patch.setattr("consumers.reader.digest", believe)


class Anything(dict[bytes, Range]):
    """Every term there may be, as far as ids were drawn."""

    def __init__(self, last_drawn: int) -> None:
        self._all = Range(0, last_drawn)

    def get(self, *_: object) -> Range:
        return self._all


def believe_in_every_term(patch: Patch) -> None:
    patch.setattr(Terms, "update", lambda _terms, _rows, last_drawn: Anything(last_drawn))


def close_gaps_when_idle_alone(patch: Patch) -> None:
    def sort_out(entries: list[Any], *others: Any) -> digest.Digest:
        result = digest.digest(entries, *others)
        if entries:
            result.close_gap = lambda *_, **__: None  # type: ignore[method-assign]
        return result

    patch.setattr("consumers.reader.digest", sort_out)


def write_nothing(patch: Patch) -> None:
    patch.setattr("consumers.rollup.indexer.compute_within", lambda *_: None)


def mark_new_minutes_alone(patch: Patch) -> None:
    mark = Marker.prepare

    def mark_once(me: Marker, after: int, upto: int) -> int:
        return upto if after else mark(me, after, upto)

    patch.setattr(Marker, "prepare", mark_once)


def leave_all_dirty(patch: Patch) -> None:
    patch.setattr(DirtyMinutes, "commit", lambda *_: None)


def run_ahead(patch: Patch) -> None:
    complete = Generation.complete
    patch.setattr(Generation, "complete", lambda me, upto: complete(me, upto + 1))


def save_nothing(patch: Patch) -> None:
    def forget(_connection: object, _worker: str, ended: Iterable[Any], _most: int) -> Saved:
        return Saved([end.receipt.ride_id for end in ended], {}, {}, [], {})

    patch.setattr("consumers.receipts.worker.save", forget)
    look_for_nothing(patch)


def look_for_nothing(patch: Patch) -> None:
    patch.setattr(Sweep, "lost", lambda _: [])


def acknowledge_nothing(patch: Patch) -> None:
    patch.setattr(Group, "ack", lambda *_: 0)


def send_nothing(patch: Patch) -> None:
    sent: list[Any] = []
    patch.setattr(Courier, "start", lambda _, receipt: sent.append(receipt))

    def ended(*_: object) -> list[Any]:
        receipts, sent[:] = sent[:], []
        return [(receipt, Verdict(Kind.DELIVERED, "")) for receipt in receipts]

    patch.setattr(Courier, "finished", ended)


def sign_with_another_secret(patch: Patch) -> None:
    patch.setattr("consumers.receipts.courier.Webhook", lambda _: Webhook(b"another secret"))


def send_other_rides(patch: Patch) -> None:
    genuine: Callable[[Known], Receipt] = Known.receipt.fget  # type: ignore[attr-defined]

    def another(known: Known) -> Receipt:
        receipt = genuine(known)
        return receipt._replace(distance=receipt.distance + Decimal("0.001"))

    patch.setattr(Known, "receipt", property(another))


def name_each_attempt_anew(patch: Patch) -> None:
    genuine: Callable[[Known], Receipt] = Known.receipt.fget  # type: ignore[attr-defined]

    def another(known: Known) -> Receipt:
        return genuine(known)._replace(webhook_id=secrets.token_hex())

    patch.setattr(Known, "receipt", property(another))
    save = outcomes.SAVE.replace(f"ended.webhook_id = {WEBHOOK_ID}", "true")
    patch.setattr("consumers.receipts.outcomes.SAVE", save)


def give_up_at_once(patch: Patch) -> None:
    dead = outcomes.SAVE.replace("kind = 'retry' AND", "kind = 'retry' OR")
    patch.setattr("consumers.receipts.outcomes.SAVE", dead)
