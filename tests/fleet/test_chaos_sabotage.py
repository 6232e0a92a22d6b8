"""The judge of the trace can fail a run: the real code is broken on purpose, and it finds that.

Each scenario is also played unbroken: then it has nothing to say.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from consumers.totals.total import Total
from lab.chaos import refusals
from tests.support.entries import RIDE
from tests.support.recorded import Recorded, Scenario, two_batches
from tests.support.resets import ask
from tests.support.world import catch_up, drain, take, transaction
from unified_log.log import Staged, decode
from unified_log.readers import digest
from unified_log.readers.checkpoint import MOVE
from unified_log.readers.gaps import Healed
from unified_log.readers.held_out import HeldOutRecords
from unified_log.streamer.barrier import Barrier
from unified_log.terms import Range, Term, Terms

Patch = pytest.MonkeyPatch
STRANGER = Term("0123456789abcdef", 0)

Sabotage = Callable[[Patch], None]


def out_of_order(recorded: Recorded) -> None:
    """A transaction draws a low number and commits after higher ones."""
    with transaction(recorded.world) as slow:
        take(slow, 1)
        recorded.world.take(2)
        recorded.count()
        slow.commit()
    recorded.world.take(3)
    recorded.count()


def a_lost_log(recorded: Recorded) -> None:
    """The log is flushed before the consumer has read it."""
    recorded.world.take(1, 2, 3)
    drain(recorded.streamer)
    recorded.lose_the_log()
    recorded.world.take(4)
    recorded.count()


def a_batch_sent_again(recorded: Recorded) -> None:
    """A full batch is in the log twice."""
    recorded.world.take(1, 2)
    recorded.streamer.run_once(double_send=True)
    catch_up(recorded.consumer)


def another_fleet(recorded: Recorded) -> None:
    """Another fleet writes to the same stream, with the same ids."""
    for number in (1, 2, 3):
        data = f'{{"id": {number}, "distance": {number * 7}}}'
        recorded.world.log().append([Staged(number, RIDE, data)], number - 1, STRANGER)
        recorded.world.take(number)
        recorded.count()


def a_refused_ride(recorded: Recorded) -> None:
    """The total refuses rides of more than 4 m, holds one out, and counts it later."""
    recorded.world.connection.execute("INSERT INTO chaos.refusals VALUES ('consumer0', 4)")
    recorded.world.take(1, 9, 2)
    drain(recorded.streamer)
    for _ in range(6):
        recorded.consumer.run_once()
    refusals.end(recorded.world.connection, "consumer0")
    for _ in range(3):
        recorded.consumer.run_once()


def a_gap_of_refused_rides(recorded: Recorded) -> None:
    """The log is lost, and the total heals in parts, since it refuses two of its rides."""
    recorded.world.connection.execute("INSERT INTO chaos.refusals VALUES ('consumer0', 4)")
    recorded.world.take(1, 9, 8, 2)
    drain(recorded.streamer)
    recorded.lose_the_log(long_ago=True)
    catch_up(recorded.consumer)


def a_reset_of_what_is_held_out(recorded: Recorded) -> None:
    """A reset takes in a ride that the total holds out."""
    recorded.world.connection.execute("INSERT INTO chaos.refusals VALUES ('consumer0', 4)")
    recorded.world.take(1, 9)
    drain(recorded.streamer)
    for _ in range(4):
        recorded.consumer.run_once()
    recorded.world.connection.execute("DELETE FROM chaos.refusals")
    ask(recorded.world)
    recorded.consumer.run_once()


def skip_the_barrier(patch: Patch) -> None:
    patch.setattr(Barrier, "settled", lambda barrier: barrier._last_drawn())


def move_the_checkpoint_alone(patch: Patch) -> None:
    patch.setattr(
        "consumers.totals.total.ADD",
        "SELECT rides, total_distance FROM consumer_states WHERE %s > 0 AND %s > 0 AND name = %s",
    )


def heal_nothing(patch: Patch) -> None:
    patch.setattr(Total, "heal", lambda _, gap: Healed(gap, 0))


def count_no_gaps(patch: Patch) -> None:
    assert MOVE.count("+ %(gaps)s") == 1
    patch.setattr("unified_log.readers.checkpoint.MOVE", MOVE.replace("+ %(gaps)s", ""))


def count_again(patch: Patch) -> None:
    def from_the_first(entries: list[Any], position: int, *others: Any) -> digest.Digest:
        at = decode(entries[0].fields).prev if entries else position
        return digest.digest(entries, at, *others)

    patch.setattr("unified_log.readers.reader.digest", from_the_first)


def count_no_resends(patch: Patch) -> None:
    assert MOVE.count("+ %(skipped)s") == 1
    patch.setattr("unified_log.readers.checkpoint.MOVE", MOVE.replace("+ %(skipped)s", ""))


def hold_out_unnoted(patch: Patch) -> None:
    patch.setattr(HeldOutRecords, "keep", lambda *_: None)


def leave_what_was_retried(patch: Patch) -> None:
    patch.setattr(HeldOutRecords, "counted", lambda *_: True)


def leave_what_was_reset(patch: Patch) -> None:
    patch.setattr("consumers.totals.reset.TAKE_BACK", "SELECT %s::text, %s::text")


class Anything(dict[bytes, Range]):
    """Takes every term for ours, for all ids that were drawn."""

    def __init__(self, last_drawn: int) -> None:
        self._all = Range(0, last_drawn)

    def get(self, *_: object) -> Range:
        return self._all


def take_every_term_as_ours(patch: Patch) -> None:
    patch.setattr(Terms, "update", lambda _terms, _rows, last_drawn: Anything(last_drawn))


class Case(NamedTuple):
    """What is played, what is broken, and what the judge says."""

    scenario: Scenario
    sabotage: Sabotage
    refused: str

    def __str__(self) -> str:
        return f"{self.scenario.__name__}-{self.sabotage.__name__}"


LEADS_TO = "what it read leads to"
CASES = [
    Case(out_of_order, skip_the_barrier, "No record is staged at or below last_sent"),
    Case(two_batches, move_the_checkpoint_alone, LEADS_TO),
    Case(a_lost_log, heal_nothing, "the sum of its rides"),
    Case(another_fleet, take_every_term_as_ours, LEADS_TO),
    Case(a_batch_sent_again, count_again, LEADS_TO),
    Case(a_batch_sent_again, count_no_resends, "was counted, not"),
    Case(a_refused_ride, hold_out_unnoted, LEADS_TO),
    Case(a_refused_ride, leave_what_was_retried, "a total moves with its checkpoint"),
    Case(a_gap_of_refused_rides, hold_out_unnoted, LEADS_TO),
    Case(a_gap_of_refused_rides, count_no_gaps, "once it is closed"),
    Case(a_reset_of_what_is_held_out, leave_what_was_reset, "a reset makes it right"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_sabotage_is_reported(recorded: Recorded, monkeypatch: Patch, case: Case) -> None:
    case.sabotage(monkeypatch)
    assert case.refused in recorded.judged(case.scenario).refused


@pytest.mark.parametrize("scenario", dict.fromkeys(case.scenario for case in CASES))
def test_the_same_without_sabotage_is_found_to_be_right(
    recorded: Recorded, scenario: Scenario
) -> None:
    assert recorded.judged(scenario).refused == ""
