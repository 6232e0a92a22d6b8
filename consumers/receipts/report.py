"""What a receipts' worker says of its rounds, for a person."""

import logging
import time

from consumers.receipts.breaker import Breaker
from consumers.receipts.round import Round
from consumers.report import Report as ReaderReport
from consumers.report import in_entries, rides
from rocket_rides.waiting import Complaint

logger = logging.getLogger("consumer")

EVERY = 1.0  # seconds: one line for all that was delivered meanwhile


class Report:
    """The log lines of the worker `name`, over all of its sessions."""

    def __init__(self, name: str, breaker: Breaker) -> None:
        self._name = name
        self._breaker = breaker
        self._complaint: Complaint | None = None  # while the receiver is away
        self._strangers = ReaderReport(name)
        # What was not told yet.
        self._delivered = self._again = 0
        self._dead: dict[int, str] = {}
        self._due = 0.0

    def __call__(self, done: Round, *, last: bool = False) -> None:
        """Report what a round did; what came of attempts at most once in EVERY seconds."""
        if done.made_group:
            logger.info("%s made the consumer group: reading the log from its start", self._name)
        if done.claimed:
            logger.info("%s took over %s", self._name, in_entries(done.claimed))
        if done.swept:
            logger.warning(
                "%s takes up %s that the log has not brought, from ride %d to %d",
                self._name,
                rides(len(done.swept)),
                done.swept[0],
                done.swept[-1],
            )
        for entry, reason in done.set_aside:
            logger.warning("%s set aside entry %s: %s", self._name, entry.redis_id, reason)
        for ride_id, reason in done.unwritten.items():
            logger.warning("what came of ride %d's receipt can't be written: %s", ride_id, reason)
        self._strangers.not_ours(done.not_ours)
        self._receiver()
        self._attempts(done, last)

    def _receiver(self) -> None:
        if self._breaker.is_open:
            self._complaint = self._complaint or Complaint()
            self._complaint(f"the receiver takes no receipts: {self._breaker.reason}")
        elif self._complaint:
            logger.info("the receiver takes receipts again")
            self._complaint = None

    def _attempts(self, done: Round, last: bool) -> None:
        self._delivered += len(done.delivered)
        self._again += len(done.again)
        self._dead |= done.dead
        if not last and time.monotonic() < self._due:
            return
        told = {"delivered": self._delivered, "to be sent again later": self._again}
        if line := ", ".join(f"{receipts(count)} {what}" for what, count in told.items() if count):
            logger.info(line)
        for ride_id, reason in list(self._dead.items())[:1]:
            what = receipts(len(self._dead))
            logger.warning("%s given up, the first that of ride %d: %s", what, ride_id, reason)
        self._due = time.monotonic() + EVERY
        self._delivered, self._again, self._dead = 0, 0, {}


def receipts(count: int) -> str:
    """A number of receipts, in words."""
    return "1 receipt" if count == 1 else f"{count} receipts"
