"""Judges the receiver's journal: it was sent what the outcomes say, and nothing else."""

from collections.abc import Iterator

from lab.chaos.evidence import Evidence
from lab.chaos.receiver import TAKEN, Delivery

Findings = Iterator[str]
DELIVERED, DEAD = "delivered", "dead"
UNDER_WAY = 15.0  # seconds in which a worker may still deliver what a restore has undone


def is_true(delivery: Delivery, evidence: Evidence) -> bool:
    """Whether it is about a ride that exists in the end, with its distance and its time."""
    ride, final, told = delivery.ride, evidence.final, (delivery.distance, delivery.taken)
    return ride in final.rides and (final.rides[ride], final.times[ride]) == told


def every_delivered_ride_was_received(evidence: Evidence) -> Findings:
    taken = (delivery for delivery in evidence.deliveries if delivery.status == TAKEN)
    accepted = {delivery.ride for delivery in taken if is_true(delivery, evidence)}
    for ride, outcome in sorted(evidence.final.outcomes.items()):
        if outcome == DELIVERED and ride not in accepted:
            yield f"ride {ride} is called delivered, but nobody has accepted its receipt"


def the_receiver_was_sent_nothing_else(evidence: Evidence) -> Findings:
    """Except for receipts of rides that a restore may have undone since."""
    asked = {ask.distance: ask for ask in evidence.asks if ask.whole}
    for delivery in evidence.deliveries:
        if delivery.flaw:
            yield f"the receiver was sent what is no receipt ({delivery.flaw})"
            continue
        ask = asked.get(delivery.distance) if delivery.distance else None
        was_undone = ask and any(
            ask.asked_at < restore.killed
            and restore.began < delivery.at < restore.killed + UNDER_WAY
            for restore in evidence.restores
        )
        if not was_undone and not is_true(delivery, evidence):
            said = f"ride {delivery.ride} of {delivery.distance} m at {delivery.taken}"
            yield f"the receiver was sent a receipt of {said}, which does not exist"


def nothing_is_sent_when_all_have_their_outcomes(evidence: Evidence) -> Findings:
    for delivery in evidence.deliveries:
        if delivery.at > evidence.settled_at:
            yield f"the receipt of ride {delivery.ride} was sent when nothing was left to send"


def a_webhook_id_names_one_receipt(evidence: Evidence) -> Findings:
    """So a receiver can tell a repetition from another receipt, also across a restore."""
    receipts: dict[str, tuple[object, ...]] = {}
    names: dict[tuple[object, ...], str] = {}
    for delivery in evidence.deliveries:
        if delivery.flaw:
            continue
        receipt = (delivery.ride, delivery.distance, delivery.taken)
        if receipts.setdefault(delivery.webhook_id, receipt) != receipt:
            yield f"two receipts have the webhook-id {delivery.webhook_id}"
        if names.setdefault(receipt, delivery.webhook_id) != delivery.webhook_id:
            yield f"the receipt of ride {delivery.ride} came under two webhook-ids"


CLAIMS = (
    every_delivered_ride_was_received,
    the_receiver_was_sent_nothing_else,
    nothing_is_sent_when_all_have_their_outcomes,
    a_webhook_id_names_one_receipt,
)
