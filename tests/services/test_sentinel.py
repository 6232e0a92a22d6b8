"""Real Sentinels decide which Redis is the primary, and the whole fleet follows them."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from demo.embedded.servers import Postgres, Redis
from lab.chaos.redis_pair import client
from tests.support.clusters import fresh_world
from tests.support.receipts import Staff
from tests.support.receiver import Receiver
from tests.support.rollup import is_complete
from tests.support.sentinels import Watched, watched
from tests.support.world import Service, World, eventually


class Fleet(NamedTuple):
    world: World
    servers: Watched
    staff: Staff
    processes: list[Service]

    def ride(self, number: int = 5) -> None:
        for _ in range(number):
            self.world.take("1.001")

    def is_exact(self) -> bool:
        last, _ = truth = self.world.truth
        all_decided = self.staff.outcomes() == last - self.world.start
        return self.world.standing() == truth and is_complete(self.world) and all_decided

    def until_exact(self) -> None:
        eventually(self.is_exact, "exact totals, minutes and receipts")

    def until_left(self, process: Service) -> None:
        """Wait until it has left an old primary. It may not notice while there are no rides."""

        def has_left() -> bool:
            self.ride(1)
            return process.said("is the primary now")

        eventually(has_left, f"{process.output.name}: a change of the primary", pause=0.1)

    def until_back(self, server: Redis) -> None:
        """Wait until an old primary follows the new one, while rides go on."""

        def is_back() -> bool:
            self.ride(1)
            return self.servers.follows(server)

        eventually(is_back, "the old primary's return", pause=0.1)
        self.ride()
        self.until_exact()

    def said(self) -> str:
        return "\n".join(each.output.read_text() for each in self.processes)

    @property
    def total(self) -> Service:
        return self.processes[1]

    def gaps(self) -> int:
        """How many the total has healed."""
        return self.total.output.read_text().count("healed a gap in the log")


@pytest.fixture
def servers(log_replicas: int) -> Iterator[Watched]:
    """One more than the streamer waits for can be lost."""
    with watched(replicas=1 + log_replicas) as servers:
        yield servers


@pytest.fixture(params=[0])
def log_replicas(request: pytest.FixtureRequest) -> int:
    """LOG_REPLICAS."""
    return int(request.param)


@pytest.fixture
def fleet(
    postgres: Postgres, redis: Redis, servers: Watched, tmp_path: Path, log_replicas: int
) -> Iterator[Fleet]:
    """On the primary that the Sentinels name."""
    with fresh_world(postgres, redis, tmp_path) as world, Receiver() as receiver:
        through = {"REDIS_URL": servers.url()}
        staff = Staff(world, receiver)
        processes = [
            world.service("streamer", LOG_REPLICAS=str(log_replicas), **through),
            world.service("consumers.totals", "consumer0", **through),
            world.service("consumers.rollup", **through),
            staff.service("one", SWEEP_AFTER="3", **through),
        ]
        fleet = Fleet(world, servers, staff, processes)
        fleet.ride()
        fleet.until_exact()
        yield fleet
        said = fleet.said()
        assert "Traceback" not in said, said


def test_what_a_primary_had_alone_heals_once_and_its_return_changes_nothing(fleet: Fleet) -> None:
    servers, old = fleet.servers, fleet.servers.primary
    [new] = servers.replicas
    os.kill(new.pid, signal.SIGSTOP)
    with client(old) as control:
        control.client_kill_filter(_type="replica")
    fleet.total.pause()
    with client(old) as control:  # else what it waits for would come from here once it goes on
        control.client_kill_filter(_type="normal", skipme=True)
    fleet.ride()
    eventually(lambda: fleet.world.staged() == 0)
    old.kill()
    fleet.total.resume()
    os.kill(new.pid, signal.SIGCONT)
    servers.until_replaced(old)
    fleet.ride()
    fleet.until_exact()
    assert fleet.gaps() == 1
    old.start()
    fleet.until_back(old)
    assert fleet.gaps() == 1


@pytest.mark.proves("sentinel")
@pytest.mark.parametrize("log_replicas", [0, 1], indirect=True)
def test_whoever_is_connected_to_a_server_that_was_replaced_leaves_it(fleet: Fleet) -> None:
    """It is up, and calls itself the primary, for as long as the Sentinels can't tell it."""
    servers, old = fleet.servers, fleet.servers.primary
    with client(old) as control:
        control.execute_command("ACL", "SETUSER", "default", "-slaveof", "-replicaof")
        servers.fail_over()
        servers.until_replaced(old)
        for process in fleet.processes[len(servers.replicas) - 1 :]:  # WAIT may tell the streamer
            fleet.until_left(process)
        for _ in range(10):
            fleet.ride(1)
            fleet.until_exact()
        assert control.info("replication")["role"] == "master"
        assert fleet.gaps() <= 1
        control.execute_command("ACL", "SETUSER", "default", "+slaveof", "+replicaof")
    fleet.until_back(old)
    assert fleet.gaps() <= 1


def test_a_primary_that_is_frozen_costs_no_more_than_the_limits(fleet: Fleet) -> None:
    old = fleet.servers.primary
    os.kill(old.pid, signal.SIGSTOP)
    fleet.ride()
    fleet.until_exact()
    os.kill(old.pid, signal.SIGCONT)
    fleet.until_back(old)
    assert fleet.gaps() <= 1
