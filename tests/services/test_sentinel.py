"""Real Sentinels decide which Redis is the primary, and the whole fleet follows them."""

import os
import re
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

HEALED = re.compile(r"healed a gap in the log")


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
        eventually(self.is_exact, "exact totals, minutes and receipts", 60)

    def until_back(self, server: Redis) -> None:
        """Wait until an old primary follows the new one, while rides go on."""

        def is_back() -> bool:
            self.ride(1)
            return self.servers.follows(server)

        eventually(is_back, "the old primary's return", 60, 0.1)
        self.ride()
        self.until_exact()

    def said(self) -> str:
        return "\n".join(each.output.read_text() for each in self.processes)

    def gaps(self) -> int:
        """How many the total has healed."""
        return len(HEALED.findall(self.processes[1].output.read_text()))


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


@pytest.mark.proves("sentinel")
def test_a_primary_that_dies_is_replaced_and_what_it_had_alone_heals_once(fleet: Fleet) -> None:
    """When it comes back, with entries that its successor lacks, that changes nothing."""
    servers, old = fleet.servers, fleet.servers.primary
    [new] = servers.replicas
    os.kill(new.pid, signal.SIGSTOP)
    with client(old) as control:
        control.client_kill_filter(_type="replica")
    fleet.ride()
    fleet.until_exact()
    old.kill()
    os.kill(new.pid, signal.SIGCONT)
    servers.until_replaced(old)
    assert fleet.gaps() == 0
    fleet.ride()
    fleet.until_exact()
    old.start()
    fleet.until_back(old)
    assert fleet.gaps() == 0


@pytest.mark.parametrize("log_replicas", [0, 1], indirect=True)
def test_whoever_is_connected_to_a_server_that_was_replaced_leaves_it(fleet: Fleet) -> None:
    """For some ten seconds it still answers, and calls itself the primary."""
    servers, old = fleet.servers, fleet.servers.primary
    servers.fail_over()
    servers.until_replaced(old)
    fleet.ride()
    fleet.until_exact()
    with client(old) as control:
        assert control.info("replication")["role"] == "master"
    fleet.until_back(old)
    assert fleet.gaps() <= 1


def test_a_primary_that_is_frozen_costs_no_more_than_the_limits(fleet: Fleet) -> None:
    servers, old = fleet.servers, fleet.servers.primary
    os.kill(old.pid, signal.SIGSTOP)
    fleet.ride()
    fleet.until_exact()
    os.kill(old.pid, signal.SIGCONT)
    fleet.until_back(old)
    assert fleet.gaps() <= 1
