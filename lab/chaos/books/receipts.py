"""The receiver's journal: it was sent what the outcomes say, and nothing else."""

from collections import defaultdict
from collections.abc import Iterator

from lab.chaos.deliveries import Delivery
from lab.chaos.evidence import Evidence
from lab.chaos.journal import Ask
from lab.chaos.restore import LATE

Findings = Iterator[str]
DELIVERED, DEAD = "delivered", "dead"


class Deliveries:
    """What the receiver was sent, compared with the rides that there are in the end."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._asked: dict[object, Ask] = {ask.distance: ask for ask in evidence.asks}
        whole = [delivery for delivery in evidence.deliveries if not delivery.flaw]
        self.true = [delivery for delivery in whole if self._is_true(delivery)]
        self.others = [delivery for delivery in whole if not self._is_true(delivery)]

    def _is_true(self, delivery: Delivery) -> bool:
        ride, final = delivery.ride, self._evidence.final
        return ride in final.rides and (final.rides[ride], final.times[ride]) == (
            delivery.distance,
            delivery.taken,
        )

    def is_of_a_lost_past(self, delivery: Delivery) -> bool:
        """Whether a restore may have undone this ride after its receipt was sent."""
        ask = self._asked.get(delivery.distance)
        return any(r.may_explain(delivery.at, ask) for r in self._evidence.restores)

    def accepted(self) -> defaultdict[int | None, int]:
        """How often the receipt of each ride that there is was accepted."""
        times: defaultdict[int | None, int] = defaultdict(int)
        for delivery in self.true:
            times[delivery.ride] += delivery.accepted
        return times


def every_delivered_ride_was_received(evidence: Evidence) -> Findings:
    accepted = Deliveries(evidence).accepted()
    for ride, receipt in sorted(evidence.receipts.items()):
        if ride in evidence.final.rides and receipt.outcome == DELIVERED and not accepted[ride]:
            yield f"ride {ride} is called delivered, but nobody has accepted its receipt"


def no_ride_with_an_outcome_is_sent_again(evidence: Evidence) -> Findings:
    """Only an attempt that was under way then: a worker that was stopped makes it when it wakes.

    Where the nemesis has deleted the outcome, a restore may have brought an earlier one back.
    """
    for delivery in Deliveries(evidence).true:
        receipt = evidence.receipts.get(delivery.ride or 0)
        if receipt is None or receipt.decided is None or delivery.ride in evidence.lost_outcomes:
            continue
        if (later := delivery.at - receipt.decided) > LATE:
            yield f"the receipt of ride {delivery.ride} was sent {later:.0f} s after its outcome"


def the_receiver_was_sent_nothing_else(evidence: Evidence) -> Findings:
    for delivery in evidence.deliveries:
        if delivery.flaw:
            yield f"the receiver was sent what is no receipt ({delivery.flaw})"
    deliveries = Deliveries(evidence)
    for delivery in deliveries.others:
        if not deliveries.is_of_a_lost_past(delivery):
            said = f"ride {delivery.ride} of {delivery.distance} m at {delivery.taken}"
            yield f"the receiver was sent a receipt of {said}, which does not exist"


def a_webhook_id_names_one_receipt(evidence: Evidence) -> Findings:
    """Whoever looks at it tells a repetition from another receipt, also across a restore."""
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
    no_ride_with_an_outcome_is_sent_again,
    the_receiver_was_sent_nothing_else,
    a_webhook_id_names_one_receipt,
)
