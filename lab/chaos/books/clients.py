"""Judges the clients' journal: each ride that was answered exists once, and no others exist."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from decimal import Decimal

from lab.chaos.evidence import Answer, Ask, Evidence, Rated, Restore

Findings = Iterator[str]


def undoing(evidence: Evidence) -> Callable[[Answer | Rated], bool]:
    """Whether a restore may have undone what was answered."""
    kept = [(restore, _kept_up_to(restore, evidence)) for restore in evidence.restores]
    return lambda answer: any(one.may_undo(answer) and answer.came > upto for one, upto in kept)


def lost(evidence: Evidence) -> list[Ask]:
    """Rides that were answered with 201, are not there as answered, and no restore explains it."""
    rides, was_undone = evidence.final.rides, undoing(evidence)

    def is_lost(ask: Ask, answer: Answer) -> bool:
        is_there = rides.get(answer.ride) == answer.distance
        return answer.distance != ask.distance or not (is_there or was_undone(answer))

    return [ask for ask in evidence.asks if any(is_lost(ask, answer) for answer in ask.answers)]


def _kept_up_to(restore: Restore, evidence: Evidence) -> float:
    """The moment up to which the backup, or the standby, must have all rides that were answered.

    It has a prefix of the rides. A ride that the old server took, and that still exists, is in the
    prefix. So is each ride that was answered before that one was asked for. A ride with two answers
    proves nothing: its id may have been drawn again after the restore.
    """
    rides = evidence.final.rides
    kept = (
        ask.asked_at
        for ask in evidence.asks
        if len(ask.answers) == 1 and rides.get(ask.answers[0].ride) == ask.distance
        if restore.is_about(ask.answers[0])
        if restore.began < ask.answers[0].came < restore.killed
    )
    return max(kept, default=restore.began)


def undone(evidence: Evidence) -> int:
    """How many rides were answered, and no longer exist under any id."""
    there = {*evidence.final.rides.values()}
    return sum(1 for ask in evidence.asks if ask.answers and ask.distance not in there)


def double(evidence: Evidence) -> list[tuple[Ask, list[int]]]:
    """Requests for one ride that led to more than one, with the rides' ids."""
    by_distance: defaultdict[Decimal, list[int]] = defaultdict(list)
    for ride, distance in evidence.final.rides.items():
        by_distance[distance].append(ride)
    pairs = ((ask, by_distance.get(ask.distance, [])) for ask in evidence.asks)
    return [(ask, ids) for ask, ids in pairs if len(ids) > 1]


def every_answered_ride_is_there(evidence: Evidence) -> Findings:
    for ask in lost(evidence):
        ids = [answer.ride for answer in ask.answers]
        yield f"a ride of {ask.distance} m was answered (as {ids}) and is lost"


def no_ride_is_there_twice(evidence: Evidence) -> Findings:
    for ask, ids in double(evidence):
        yield f"one ride of {ask.distance} m was asked for, but there are {ids}"


def every_rating_is_there(evidence: Evidence) -> Findings:
    stars, was_undone = evidence.final.stars, undoing(evidence)
    for ask in evidence.asks:
        for rated in ask.rated:
            if stars.get(rated.ride) != rated.stars and not was_undone(rated):
                has = stars.get(rated.ride, "none")
                yield f"ride {rated.ride} got {rated.stars} stars, and has {has}"


def every_request_was_answered(evidence: Evidence) -> Findings:
    for ask in evidence.asks:
        if ask.key and ask.whole and not ask.given_up and not ask.answers:
            yield f"the ride of {ask.distance} m (key {ask.key}) was never answered"


def every_ride_was_asked_for(evidence: Evidence) -> Findings:
    asked = {ask.distance: ask for ask in evidence.asks}
    keys = evidence.final.keys
    for ride, distance in evidence.final.rides.items():
        ask = asked.get(distance)
        if ask is None:
            yield f"ride {ride} of {distance} m was never asked for"
        elif not ask.whole:
            yield f"ride {ride} of {distance} m exists, but its request was never completed"
        elif ask.key and keys.get(ask.key) != ride:
            yield f"ride {ride} was taken under key {ask.key}, which names {keys.get(ask.key)}"


def no_process_ended_by_itself(evidence: Evidence) -> Findings:
    for end in evidence.exits:
        if not end.expected:
            sent = f"it was sent {end.sent.name}" if end.sent else "nobody had sent it a signal"
            yield f"{end.service} ended with status {end.status} after {end.age:.0f} s; {sent}"


ABOUT_RIDES = (every_answered_ride_is_there, no_ride_is_there_twice, every_ride_was_asked_for)
OF_REQUESTS = (*ABOUT_RIDES, every_request_was_answered)
CLAIMS = (*OF_REQUESTS, every_rating_is_there, no_process_ended_by_itself)
