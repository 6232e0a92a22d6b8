"""Workers that deliver receipts, in the test's own process or in one of theirs."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, NamedTuple, TypeVar

import pytest
import redis

from consumers.receipts.courier import Courier
from consumers.receipts.delivery import Delivery
from consumers.receipts.group import Group, name_of
from consumers.receipts.inbox import Inbox
from consumers.receipts.queue import Queue
from consumers.receipts.statements import MAKE_WORKER
from rocket_rides.settings import Settings
from tests.support.receiver import Receiver
from tests.support.world import PATIENCE, Service, World
from unified_log import database, session_settings
from unified_log.log import Log
from unified_log.readers.committed import KnownTerms
from unified_log.readers.report import Report

T = TypeVar("T")

SECRET = "whsec_" + "dGVzdHMgb2YgcmVjZWlwdHMgb25seS4u"

# Settings of a worker that soon claims what others have read, and sweeps; in seconds.
SOON = {"claim_after": 0.3, "sweep_after": 0.15}


def sent(world: World, rides: int) -> list[int]:
    """Take rides and send them to the log."""
    return world.send(*range(1, rides + 1))


class Delivered(NamedTuple):
    """A row of `receipts`, as far as tests ask."""

    outcome: str | None
    attempts: int
    reason: str | None


class Crash(Exception):
    """A worker ends here."""


# The steps at which a worker may crash, in order, by what it does next.
STEPS: dict[str, tuple[type, str]] = {
    "after entries were read": (KnownTerms, "ask"),
    "after rides were in the inbox": (Group, "acknowledge"),
    "after attempts were written": (Delivery, "_make"),
    "after attempts ended": (Queue, "save"),
}


@contextmanager
def crash(step: str) -> Iterator[None]:
    """A worker that comes to this step in the block crashes, and one does."""

    def end(*_: object) -> None:
        raise Crash

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*STEPS[step], end)
        with pytest.raises(Crash):
            yield


class Staff:
    """The workers of one test, all delivering to one receiver."""

    def __init__(self, world: World, receiver: Receiver) -> None:
        self.world = world
        self.receiver = receiver
        self.colleagues: list[Colleague] = []

    def worker(self, name: str = "one", **settings: Any) -> "Colleague":
        """A worker in this process."""
        delivery = {"receipt_url": self.receiver.url, "receipt_secret": SECRET}
        colleague = Colleague(self.world.config(**delivery, **settings), name)
        self.colleagues.append(colleague)
        return colleague

    def queue_up(self, worker: "Colleague", rides: int) -> list[int]:
        """Take rides, and have a worker read them, and not yet deliver."""
        taken = sent(self.world, rides)
        while self.world.value("SELECT count(*) FROM receipts") < rides:
            worker.read()
        return taken

    def service(self, name: str = "one", **environment: str) -> Service:
        """`python -m consumers.receipts`, as it is run."""
        settings = {"RECEIPT_URL": self.receiver.url, "RECEIPT_SECRET": SECRET, **environment}
        return self.world.service("consumers.receipts", name, **settings)

    @property
    def group(self) -> str:
        """The name of this database's consumer group."""
        return name_of(self.world.connection)

    @property
    def pending(self) -> int:
        """How many entries, of all members; 0 when there is no group."""
        try:
            found = self.world.log().command("XPENDING", self.world.stream, self.group)
        except redis.ResponseError:
            return 0
        return int(found[0])

    def receipt(self, ride_id: int) -> Delivered:
        row = self.world.connection.execute(
            "SELECT outcome, attempts, reason FROM receipts WHERE ride_id = %s", [ride_id]
        ).fetchone()
        return Delivered(*row) if row else Delivered(None, 0, None)

    def outcomes(self, outcome: str = "delivered") -> int:
        return self.world.value("SELECT count(*) FROM receipts WHERE outcome = %s", outcome)

    def leases_run_out(self) -> None:
        """Those of workers that died: others may take now what these had in flight."""
        over = "UPDATE receipts SET due_at = now() WHERE lease IS NOT NULL"
        self.world.connection.execute(over)

    @property
    def complete_to(self) -> int:
        """The number of the ride, counted in its cell, up to which each has its outcome."""
        return self.world.value("SELECT complete_to - cell_start() FROM receipts_state")


class Colleague:
    """A worker that a test runs round by round: the reading loop, then the other one."""

    def __init__(self, config: Settings, name: str) -> None:
        self.name = name
        self._config = config
        self._runner = asyncio.Runner()
        self._courier = Courier(config.receiver_url, config.signing_secrets)
        self.run(self._courier.__aenter__())
        self.delivery = Delivery(
            self._courier, config.receipt_concurrency, config.receipt_timeout, config.sweep_after
        )
        self.begin_session()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it on this worker's event loop."""
        return self._runner.run(work, context=copy_context())

    def begin_session(self) -> None:
        """Connect to both servers, as at first or after an outage."""
        config, session = self._config, session_settings.NESTED_LOOPS
        self._reading = database.connect(config.postgres_url, f"inbox {self.name}", **session)
        self._reading.execute(MAKE_WORKER, {"worker": self.name})
        self._log = Log(config.log_url, config.stream_name)
        group = Group(self._log, name_of(self._reading), self.name)
        has_news = self.delivery.has_news
        self.inbox = Inbox(self._reading, group, config.claim_after, Report(self.name), has_news)
        connect = database.connect_async(config.postgres_url, self.name, **session)
        self.connection = self.run(connect)
        self.queue = Queue(self.connection, self.name, config.receipt_attempts, config.lease)

    def read(self) -> None:
        """One round of the reading loop."""
        self.inbox.run_once()

    def deliver(self, wait: float = 0.02) -> None:
        """One round of the loop that works off the queue."""
        self.run(self.delivery.run_once(self.queue, wait=wait))

    def until(
        self, claim: Callable[[], object], patience: float = PATIENCE, *, reading: bool = True
    ) -> None:
        """Round after round until `claim()` is true."""
        deadline = time.monotonic() + patience
        while not claim():
            assert time.monotonic() < deadline, "it did not come about"
            if reading:
                self.read()
            self.deliver()

    def die(self) -> None:
        """End as by SIGKILL: nothing is written down, all connections are closed."""
        for task in self.delivery.in_flight.values():
            task.cancel()
        self.end_session()

    def end_session(self) -> None:
        self.run(self.connection.close())
        self._reading.close()
        self._log.redis.close()

    def close(self) -> None:
        self.die()
        self.run(self._courier.__aexit__())
        self._runner.close()


@contextmanager
def staff(world: World, receiver: Receiver) -> Iterator[Staff]:
    found = Staff(world, receiver)
    try:
        yield found
    finally:
        for colleague in found.colleagues:
            colleague.close()
