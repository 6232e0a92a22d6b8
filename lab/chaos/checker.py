"""The checker: finds what in the evidence contradicts the guarantee. A finding is a sentence."""

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal, localcontext
from itertools import islice

from lab.chaos import counts_checker, minutes_checker, nights_checker, receipts_checker
from lab.chaos.evidence import Evidence
from lab.chaos.journal import Ask
from lab.chaos.log_checker import (
    nobody_is_blamed_without_reason,
    the_log_is_a_chain_of_rides,
    the_log_is_in_order,
    what_is_not_true_is_explained,
)
from lab.chaos.losses import lost
from rocket_rides.distance import EXACT

MOST = 5  # findings of one kind that are listed

Findings = Iterator[str]


def check(evidence: Evidence) -> list[str]:
    """All findings; none if every ride counted once, in order, and nothing else broke."""
    findings: list[str] = []
    for claim in CLAIMS:
        sentences = claim(evidence)
        findings += islice(sentences, MOST)
        if more := sum(1 for _ in sentences):
            findings.append(f"... and {more} more of these")
    return findings


def double(evidence: Evidence) -> list[tuple[Ask, list[int]]]:
    """Requests for one ride that led to more than one, with the rides' ids."""
    by_distance = _by_distance(evidence)
    return [
        (ask, ids) for ask in evidence.asks if len(ids := by_distance.get(ask.distance, [])) > 1
    ]


def true_total(evidence: Evidence) -> Decimal:
    """The exact sum of all rides, in metres."""
    with localcontext(EXACT):
        return sum(evidence.final.rides.values(), Decimal(0))


def every_answered_ride_is_there_once(evidence: Evidence) -> Findings:
    for ask in lost(evidence):
        ids = [answer.ride for answer in ask.answers]
        yield f"a ride of {ask.distance} m was answered (as {ids}) and is lost"
    for ask, ids in double(evidence):
        yield f"one ride of {ask.distance} m was asked for, but there are {ids}"


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


def every_total_is_exact(evidence: Evidence) -> Findings:
    total, last = true_total(evidence), max(evidence.final.rides, default=0)
    for name in evidence.names:
        standing = evidence.final.consumers.get(name)
        if standing is None:
            yield f"there is no {name}"
            continue
        if standing.total != total:
            difference = standing.total - total
            yield f"{name}'s total is {standing.total} m, not {total} m ({difference:+} m)"
        if standing.last_ride != last:
            yield f"{name}'s last ride is {standing.last_ride}, not {last}"


def nothing_is_left_staged(evidence: Evidence) -> Findings:
    final = evidence.final
    if final.staged:
        yield f"{len(final.staged)} records are left staged: {final.staged[:MOST]}"
    if final.last_sent != (last := max(final.rides, default=0)):
        yield f"the last record sent is {final.last_sent}, but the last ride is {last}"
    yield from final.dead_letters


def nothing_else_broke(evidence: Evidence) -> Findings:
    for end in evidence.exits:
        if not end.expected:
            sent = f"it was sent {end.sent.name}" if end.sent else "nobody had sent it a signal"
            yield f"{end.service} ended with status {end.status} after {end.age:.0f} s; {sent}"
    yield from evidence.errors


CLAIMS = (
    every_answered_ride_is_there_once,
    every_request_was_answered,
    every_ride_was_asked_for,
    every_total_is_exact,
    the_log_is_in_order,
    the_log_is_a_chain_of_rides,
    what_is_not_true_is_explained,
    nobody_is_blamed_without_reason,
    *minutes_checker.CLAIMS,
    *receipts_checker.CLAIMS,
    *counts_checker.CLAIMS,
    *nights_checker.CLAIMS,
    nothing_is_left_staged,
    nothing_else_broke,
)


def _by_distance(evidence: Evidence) -> dict[Decimal, list[int]]:
    by_distance: defaultdict[Decimal, list[int]] = defaultdict(list)
    for ride, distance in evidence.final.rides.items():
        by_distance[distance].append(ride)
    return by_distance
