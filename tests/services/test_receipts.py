"""Receipts: each ride's is delivered, and its outcome is in Postgres before its entry is done."""

from collections.abc import Iterator

import pytest

from tests.support.receipts import Staff
from tests.support.receipts import staff as staff_of
from tests.support.receiver import Receiver
from tests.support.world import World, drain, eventually


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def staff(world: World, receiver: Receiver) -> Iterator[Staff]:
    with staff_of(world, receiver) as staff:
        yield staff


def test_every_ride_gets_its_receipt_once_from_whichever_worker(staff: Staff) -> None:
    rides = staff.world.take(*range(1, 301))
    drain(staff.world.streamer())
    one, other = staff.worker("one"), staff.worker("other")
    one.until(lambda: other.run_once() and staff.outcomes() == 300)
    eventually(lambda: one.run_once() and other.run_once() and staff.pending == 0)
    assert staff.receiver.rides == dict.fromkeys(rides, 1)
    assert staff.receipt(rides[0]) == ("delivered", 1, None)


def test_processes_deliver_what_is_taken_while_they_run_and_stop_at_once(staff: Staff) -> None:
    world = staff.world
    world.service("streamer").says("leading")
    workers = [staff.service(name).says(f"{name} delivers receipts") for name in ("one", "other")]
    rides = [ride for n in range(20) for ride in world.take(*range(1, 11))]
    eventually(lambda: staff.outcomes() == 200)
    eventually(lambda: staff.pending == 0)
    assert staff.receiver.rides == dict.fromkeys(rides, 1)
    assert [worker.stop() for worker in workers] == [0, 0]
    for worker in workers:
        assert "WARNING" not in worker.output.read_text()
        print(worker.output.read_text())
    assert staff.group.members() == []
