"""Workers that deliver receipts, in the test's own process or in one of theirs."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import psycopg

from consumers.receipts.breaker import Breaker
from consumers.receipts.courier import Courier
from consumers.receipts.deliveries import Deliveries
from consumers.receipts.group import Group, GroupGone
from consumers.receipts.round import Round
from consumers.receipts.worker import Patience, Worker
from rocket_rides import session_settings
from rocket_rides.groups import name_of
from rocket_rides.log import Log
from tests.support.receiver import Receiver
from tests.support.world import PATIENCE, Service, World, drain, eventually

SECRET = "whsec_" + "dGVzdHMgb2YgcmVjZWlwdHMgb25seS4u"
# Claims are tested by members that are gone; nobody hangs for so long.
USUALLY = Patience(attempts=10, timeout=5, claim_after=30, sweep_after=30)
SOON = USUALLY._replace(sweep_after=0.15)


def sent(world: World, rides: int) -> list[int]:
    """Take rides and send them to the log."""
    taken = world.take(*range(1, rides + 1))
    drain(world.streamer())
    return taken


class Delivered(NamedTuple):
    """A row of `receipts`, as far as tests ask."""

    outcome: str | None
    attempts: int
    reason: str | None


class Staff:
    """The workers of one test, all delivering to one receiver."""

    def __init__(self, world: World, receiver: Receiver) -> None:
        self.world = world
        self.receiver = receiver
        self.couriers: list[Courier] = []

    def worker(
        self, name: str = "one", patience: Patience = USUALLY, concurrency: int = 64
    ) -> "Colleague":
        """A worker in this process: a member of the group at once."""
        courier = Courier(self.receiver.url, SECRET, concurrency, patience.timeout)
        self.couriers.append(courier)
        return self.session(name, Deliveries(courier, Breaker()), patience)

    def session(
        self, name: str, deliveries: Deliveries, patience: Patience = USUALLY
    ) -> "Colleague":
        """Another session of a worker."""
        connection = self.world.connect(**session_settings.NESTED_LOOPS)
        colleague = Colleague(connection, self.world.log(), name, deliveries, patience)
        # The server may yet have to notice that the session before has been closed.
        eventually(colleague.join, f"{name} in the group")
        return colleague

    def service(self, name: str = "one", **environment: str) -> Service:
        """`python -m consumers.receipts`, as it is run."""
        settings = {"RECEIPT_URL": self.receiver.url, "RECEIPT_SECRET": SECRET, **environment}
        return self.world.service("consumers.receipts", name, **settings)

    @property
    def group(self) -> Group:
        return Group(self.world.log(), name_of(self.world.connection), "a test")

    @property
    def pending(self) -> int:
        """How many entries, of all members; 0 when there is no group."""
        try:
            return sum(member.pending for member in self.group.members())
        except GroupGone:
            return 0

    def receipt(self, ride_id: int) -> Delivered:
        row = self.world.connection.execute(
            "SELECT outcome, attempts, reason FROM receipts WHERE ride_id = %s", [ride_id]
        ).fetchone()
        return Delivered(*row) if row else Delivered(None, 0, None)

    def outcomes(self, outcome: str = "delivered") -> int:
        return self.world.value("SELECT count(*) FROM receipts WHERE outcome = %s", outcome)

    @property
    def complete_to(self) -> int:
        return self.world.value("SELECT complete_to FROM receipts_state")


class Colleague(Worker):
    """A worker that a test runs round by round."""

    def __init__(
        self,
        connection: psycopg.Connection,
        log: Log,
        name: str,
        deliveries: Deliveries,
        patience: Patience,
    ) -> None:
        super().__init__(connection, log, name, deliveries, patience)
        self.connection = connection
        self.log = log
        self.deliveries = deliveries
        self.intake.membership.gone_after = 0

    def until(self, claim: Callable[[], object], patience: float = PATIENCE) -> list[Round]:
        """Round after round until `claim()` is true; returns what they did."""
        deadline = time.monotonic() + patience
        rounds = []
        while not claim():
            assert time.monotonic() < deadline, "it did not come about"
            rounds.append(self.run_once(wait=0.02))
        return rounds

    def die(self) -> None:
        """End as by SIGKILL: nothing is written down, both connections are closed."""
        self.deliveries.forget()
        self.connection.close()
        self.log.redis.close()


@contextmanager
def staff(world: World, receiver: Receiver) -> Iterator[Staff]:
    found = Staff(world, receiver)
    try:
        yield found
    finally:
        for courier in found.couriers:
            courier.__exit__(None, None, None)
