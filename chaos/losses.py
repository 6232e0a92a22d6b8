"""Rides that were answered and are missing: lost, or undone by a restore, which keeps a prefix."""

from chaos.evidence import Evidence
from chaos.journal import Answer, Ask
from chaos.restore import Restore


class Excuses:
    """The restores of a run, each with the moment after which it may have undone anything.

    A backup holds what was committed up to some moment between its beginning and its end. A ride
    that the old server took and that still exists was in the backup; so was everything answered
    before anybody asked for that ride.
    """

    def __init__(self, evidence: Evidence) -> None:
        kept = [ask for ask in evidence.asks if _is_kept(evidence, ask)]
        self._since = [(restore, _kept_up_to(restore, kept)) for restore in evidence.restores]

    def cover(self, answer: Answer) -> bool:
        """Whether a restore may have undone the ride in this answer."""
        return any(
            restore.may_undo(answer) and answer.came > since for restore, since in self._since
        )


def _is_kept(evidence: Evidence, ask: Ask) -> bool:
    """It has one answer, which holds. With two, a restore may have drawn the same id again."""
    rides = evidence.final.rides
    return len(ask.answers) == 1 and rides.get(ask.answers[0].ride) == ask.distance


def _kept_up_to(restore: Restore, kept: list[Ask]) -> float:
    by_the_old_server = (
        ask.asked_at for ask in kept if restore.began < ask.answers[0].came < restore.killed
    )
    return max(by_the_old_server, default=restore.began)


def lost(evidence: Evidence) -> list[Ask]:
    """Rides answered with 201 that are not there as answered, and no restore explains why."""
    rides, excuses = evidence.final.rides, Excuses(evidence)
    return [
        ask
        for ask in evidence.asks
        if any(
            a.distance != ask.distance or (rides.get(a.ride) != a.distance and not excuses.cover(a))
            for a in ask.answers
        )
    ]


def undone(evidence: Evidence, *, by_failover: bool) -> tuple[list[Ask], list[Ask]]:
    """The rides that restores undid for good, or fail-overs, and all that they may have undone.

    A ride that was asked for again after the restore exists again.
    """
    there = set(evidence.final.rides.values())
    restores = [each for each in evidence.restores if each.by_failover == by_failover]
    exposed = [
        ask
        for ask in evidence.asks
        if ask.answers and all(any(r.may_undo(answer) for r in restores) for answer in ask.answers)
    ]
    return [ask for ask in exposed if ask.distance not in there], exposed
