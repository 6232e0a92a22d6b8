"""Attempts: who may make one, as the ride's row says, and when."""

import threading

import pytest

from consumers.receipts.attempts import SUSPECT, Attempts, Known
from consumers.receipts.dead import change
from consumers.receipts.outcomes import Ended, save
from consumers.receipts.verdict import Kind, Verdict
from tests.support.world import World, drain, eventually, transaction

MOST = 4
DELIVERED, REFUSED = Verdict(Kind.DELIVERED, "204"), Verdict(Kind.REFUSED, "410")
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
DECIDE = """
    UPDATE receipts SET outcome = 'delivered', decided_at = now(), unfinished = 0,
        due_at = '-infinity'
"""
LATER, AT_ONCE = Verdict(Kind.RETRY, "503", 300.0), "UPDATE receipts SET due_at = now()"


class Desk:
    """A worker at its rows."""

    def __init__(self, world: World, most: int = MOST) -> None:
        self.world = world
        self._attempts = Attempts(world.connect(), "one", most, timeout=60)

    def begin(self, *rides: int, **said: list[int]) -> list[str]:
        """What is said of each ride."""
        return [known.state for known in self._begin(rides, said).values()]

    def _begin(self, rides: tuple[int, ...], said: dict[str, list[int]]) -> dict[int, Known]:
        return self._attempts.begin(rides or [1], **said)

    def end(self, verdict: Verdict) -> None:
        """The attempt under way for ride 1 has come to this."""
        [known] = self._begin((1,), {}).values()
        ended = Ended(known.receipt, verdict, known.attempts, known.forgiven)
        save(self.world.connection, "one", [ended], MOST)

    @property
    def attempts(self) -> int:
        return self.world.value("SELECT attempts FROM receipts WHERE ride_id = 1")


@pytest.fixture
def desk(world: World) -> Desk:
    """For a ride that was sent."""
    world.take(5)
    drain(world.streamer())
    return Desk(world)


def test_a_ride_that_the_streamer_has_not_committed_has_no_attempt(desk: Desk) -> None:
    desk.world.take(6)
    assert desk.begin(2, 99) == []
    drain(desk.world.streamer())
    assert desk.begin(2, 99) == ["begun"]


def test_an_attempt_under_way_is_a_lease_unless_its_worker_is_gone(desk: Desk) -> None:
    assert desk.begin() == ["begun"]
    assert desk.begin() == ["leased"]
    assert desk.begin(taken_over=[1]) == ["begun"]
    assert desk.attempts == 2


def test_what_the_receiver_asked_for_is_a_lease_for_everyone(desk: Desk) -> None:
    desk.begin()
    desk.end(LATER)
    assert desk.begin() == desk.begin(taken_over=[1]) == ["leased"]
    desk.world.connection.execute(AT_ONCE)
    assert desk.begin() == ["begun"]


def test_what_has_lost_workers_is_tried_alone(desk: Desk) -> None:
    for _ in range(SUSPECT):
        assert desk.begin(taken_over=[1]) == ["begun"]
    assert desk.begin(taken_over=[1]) == ["suspect"]
    assert desk.begin(taken_over=[1], alone=[1]) == ["begun"]


def test_there_are_so_many_attempts_and_no_more(desk: Desk) -> None:
    for _ in range(MOST):
        assert desk.begin(taken_over=[1], alone=[1]) == ["begun"]
    assert desk.begin(taken_over=[1], alone=[1]) == ["exhausted"]
    assert desk.attempts == MOST


def test_what_has_had_more_attempts_than_there_may_be_now_waits_all_the_same(desk: Desk) -> None:
    """Whoever takes it over: the receiver asked for that time."""
    desk.begin()
    desk.end(LATER)
    stricter = Desk(desk.world, most=1)
    assert stricter.begin(taken_over=[1]) == ["leased"]
    desk.world.connection.execute(AT_ONCE)
    assert stricter.begin(taken_over=[1]) == ["exhausted"]


def test_attempts_before_a_replay_do_not_count(desk: Desk) -> None:
    for _ in range(MOST):
        desk.begin(taken_over=[1], alone=[1])
    desk.end(REFUSED)
    assert desk.begin() == ["settled"]
    change(desk.world.connection, "replay", [1])
    for _ in range(MOST):
        assert desk.begin(taken_over=[1], alone=[1]) == ["begun"]
    assert desk.begin(taken_over=[1], alone=[1]) == ["exhausted"]


@pytest.mark.parametrize("verdict", [DELIVERED, REFUSED])
def test_what_has_an_outcome_is_sent_no_more(desk: Desk, verdict: Verdict) -> None:
    desk.begin()
    desk.end(verdict)
    desk.world.connection.execute(AT_ONCE)
    assert desk.begin() == ["settled"]
    assert desk.attempts == 1


def test_an_outcome_that_is_written_meanwhile_is_seen(desk: Desk) -> None:
    """By whoever waited for the row, although it had none when the statement began."""
    desk.begin()
    found: list[list[str]] = []
    with transaction(desk.world) as other:
        other.execute(DECIDE)
        late = threading.Thread(target=lambda: found.append(desk.begin(taken_over=[1])))
        late.start()
        eventually(lambda: desk.world.value(WAITING) == 1)
        other.commit()
        late.join()
    assert found == [["leased"]]
    assert desk.attempts == 1


def test_a_lost_ride_counts_with_its_first_attempt(desk: Desk) -> None:
    for _ in range(2):
        desk.begin(taken_over=[1], lost=[1])
    assert desk.world.value("SELECT swept FROM receipts_workers WHERE name = 'one'") == 1
