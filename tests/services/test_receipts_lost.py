"""Rides that the log has lost get their receipts all the same, and no others do."""

from collections.abc import Callable

import pytest

from tests.support.disasters import cut_newest, flush, restart_redis, staged_too_late
from tests.support.receipts import SOON, Staff, crash, sent
from tests.support.world import World, drain, eventually
from unified_log.repair import repair

LOSSES: dict[str, Callable[[Staff], object]] = {
    "a flush": lambda staff: flush(staff.world),
    "a deleted stream": lambda staff: staff.world.log().start_anew(),
    "a destroyed group": lambda staff: staff.world.destroy_group(staff.group),
    "trimming past the group by the cap": lambda staff: staff.world.log().trim_to(0, exactly=True),
    "a log without its newest entries": lambda staff: cut_newest(staff.world),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_each_ride_gets_its_receipt_and_none_with_an_outcome_is_sent_again(
    staff: Staff, loss: str
) -> None:
    """Of 60 rides 30 are delivered, 10 were read by a worker that died, and 20 are unread."""
    rides = sent(staff.world, 30)
    one = staff.worker("one")
    one.until(lambda: staff.outcomes() == 30 and staff.pending == 0)
    rides += sent(staff.world, 10)
    with crash("after entries were read"):
        one.read()
    one.die()
    rides += sent(staff.world, 20)
    LOSSES[loss](staff)
    other = staff.worker("other", **SOON)
    other.until(lambda: staff.complete_to == 60 and staff.pending == 0)
    rides += sent(staff.world, 5)
    other.until(lambda: staff.outcomes() == 65)
    assert staff.receiver.rides == dict.fromkeys(rides, 1)


@pytest.mark.parametrize("disaster", [flush, restart_redis])
def test_a_process_that_waits_for_entries_goes_on_after(
    staff: Staff, disaster: Callable[[World], None]
) -> None:
    world = staff.world
    sent(world, 3)
    worker = staff.service(SWEEP_AFTER="0.5").says("one delivers receipts")
    eventually(lambda: staff.outcomes() == 3)
    disaster(world)
    world.take(1, 2)
    drain(world.streamer())
    eventually(lambda: staff.outcomes() == staff.complete_to == 5)
    assert max(staff.receiver.rides.values()) == 1
    assert worker.process.poll() is None


def test_a_repaired_ride_gets_its_receipt_although_the_sweep_was_past_it(staff: Staff) -> None:
    world = staff.world
    staged_too_late(world)
    worker = staff.worker("one", **SOON)
    # As if it was not committed yet.
    world.connection.execute("DELETE FROM rides WHERE id = cell_start() + 2")
    worker.until(lambda: staff.complete_to == 4)
    world.connection.execute(
        "INSERT INTO rides (id, distance) OVERRIDING SYSTEM VALUE VALUES (cell_start() + 2, 30)"
    )
    assert repair(world.connect())[0] == [world.start + 2]
    assert staff.complete_to == 1
    worker.until(lambda: staff.complete_to == 4)
    assert staff.receiver.rides == {world.start + ride: 1 for ride in (1, 2, 4)}
