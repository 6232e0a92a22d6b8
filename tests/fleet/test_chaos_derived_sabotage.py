"""The proof can fail, for minutes and receipts: each promise broken on purpose, and reported.

Every scenario is also played unbroken: then the checker has nothing to say.
"""

import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from decimal import Decimal
from typing import Any

import pytest
import redis
from standardwebhooks import Webhook

from consumers.digest import Digest
from consumers.receipts import outcomes
from consumers.receipts.attempts import Known
from consumers.receipts.breaker import Breaker
from consumers.receipts.courier import Courier, Kind, Verdict
from consumers.receipts.deliveries import Deliveries
from consumers.receipts.group import Group
from consumers.receipts.outcomes import Saved
from consumers.receipts.receipt import Receipt
from consumers.receipts.sweep import Sweep
from consumers.receipts.worker import Patience, Worker
from consumers.rollup.dirty import DirtyMinutes, MarksLost
from consumers.rollup.generation import Generation
from consumers.rollup.lead import Lead
from consumers.rollup.marker import Marker
from consumers.rollup.minutes import SESSION
from consumers.round import NOTHING_HEALED, HealedSum
from lab.chaos.checker import check
from lab.chaos.deliveries import Mood
from lab.chaos.derived import read_receipts, read_rollup
from lab.chaos.evidence import Evidence, Told, read_final_state
from lab.chaos.journal import Answer, Ask
from lab.chaos.receiver import Receiver
from rocket_rides.receipts import WEBHOOK_ID
from tests.support.disasters import flush
from tests.support.world import PATIENCE, World, drain

Patch = pytest.MonkeyPatch
Findings = list[str]

ROUNDS = 3
LONGEST = 1.2  # seconds that a worker gets for receipts that never come to an end
TAKE = """
    WITH ride AS (
        INSERT INTO rides (distance, created_at)
        SELECT unnest(%s::numeric[]), '2026-11-22 12:00:30Z' RETURNING id, distance
    ), staged AS (
        INSERT INTO staged_log_records (id, action, object, data)
        SELECT id, 'create', 'ride', jsonb_build_object('id', id, 'distance', distance) FROM ride
    )
    SELECT id, distance FROM ride
"""


def take(world: World, *distances: str) -> list[Ask]:
    """Rides of one minute, asked for, answered and sent."""
    rides = world.connection.execute(TAKE, [list(distances)]).fetchall()
    drain(world.streamer())
    now = time.monotonic()
    return [
        Ask(distance, whole=True, answers=[Answer(ride, distance, now, now)])
        for ride, distance in rides
    ]


def findings(world: World, asks: list[Ask], **others: Any) -> Findings:
    log = [Told(record, 0) for record in world.records()]
    return check(Evidence(asks, read_final_state(world.connection), log, **others))


def two_batches(world: World) -> Findings:
    """A minute gets rides, is computed, and gets more."""
    lead = Lead(world.connect(**SESSION), world.log())
    asks: list[Ask] = []
    for distance in ("1", "2"):
        asks += take(world, distance)
        for _ in range(ROUNDS):
            lead.marker.run_once()
            with suppress(MarksLost):
                lead.indexer.run_once(lead.marker.at.ride_id)
    with redis.Redis.from_url(world.redis.url) as client:
        return findings(world, asks, rollup=read_rollup(world.connection, client))


def write_nothing(patch: Patch) -> None:
    patch.setattr("consumers.rollup.indexer.compute_within", lambda *_: None)


def mark_new_minutes_alone(patch: Patch) -> None:
    mark = Marker._mark

    def mark_once(me: Marker, after: int, batch: Digest) -> tuple[int, HealedSum]:
        return (batch.last_ride_id, NOTHING_HEALED) if after else mark(me, after, batch)

    patch.setattr(Marker, "_mark", mark_once)


def leave_all_dirty(patch: Patch) -> None:
    patch.setattr(DirtyMinutes, "commit", lambda *_: None)


def run_ahead(patch: Patch) -> None:
    complete = Generation.complete
    patch.setattr(Generation, "complete", lambda me, upto: complete(me, upto + 1))


def delivered(
    world: World,
    receiver: Receiver,
    asks: Iterable[Ask],
    first: Mood = Mood.WELL,
    longest: float | None = None,
) -> None:
    """Let a worker deliver until every receipt has its outcome, or no longer.

    Until the receiver has been sent anything, it is in its `first` mood.
    """
    last = max(answer.ride for ask in asks for answer in ask.answers)
    with (
        Courier(receiver.url, receiver.secret, concurrency=8, timeout=5) as courier,
        ExitStack() as failing,
    ):
        failing.enter_context(receiver.failing(first))
        patience = Patience(attempts=100, timeout=5, claim_after=0.2, sweep_after=0.1)
        deliveries = Deliveries(courier, Breaker())
        worker = Worker(world.connect(), world.log(), "worker", deliveries, patience)
        assert worker.join()
        deadline = time.monotonic() + (longest or LONGEST)
        while time.monotonic() < deadline:
            worker.run_once(wait=0.02)
            if receiver.deliveries:
                failing.close()
            if world.value("SELECT complete_to FROM receipts_state") >= last:
                break


def judged(world: World, receiver: Receiver, asks: list[Ask]) -> Findings:
    with redis.Redis.from_url(world.redis.url) as client:
        receipts = read_receipts(world.connection, client, world.stream)
    return findings(world, asks, receipts=receipts, deliveries=receiver.deliveries)


def a_receiver_at_work(world: World) -> Findings:
    """It takes two receipts, and never the third."""
    asks = take(world, "1", "2", "100.9")
    with Receiver() as receiver:
        delivered(world, receiver, asks)
        return judged(world, receiver, asks)


def a_receiver_that_fails(world: World) -> Findings:
    """It hangs up in the middle of its first answer."""
    asks = take(world, "1")
    with Receiver() as receiver:
        delivered(world, receiver, asks, first=Mood.CUTTING, longest=PATIENCE)
        return judged(world, receiver, asks)


def a_flushed_log(world: World) -> Findings:
    """Nobody has read it."""
    asks = take(world, "1")
    told = [Told(record, 0) for record in world.records()]
    flush(world)
    with Receiver() as receiver:
        delivered(world, receiver, asks)
        found = judged(world, receiver, asks)
    return [finding for finding in found if told and "saw no true entry" not in finding]


def save_nothing(patch: Patch) -> None:
    def forget(_connection: object, _worker: str, ended: Iterable[Any], _most: int) -> Saved:
        return Saved([end.receipt.ride_id for end in ended], {}, {}, [], {})

    patch.setattr("consumers.receipts.worker.save", forget)
    look_for_nothing(patch)


def look_for_nothing(patch: Patch) -> None:
    patch.setattr(Sweep, "lost", lambda _: [])


def acknowledge_nothing(patch: Patch) -> None:
    patch.setattr(Group, "ack", lambda *_: 0)


def send_nothing(patch: Patch) -> None:
    sent: list[Any] = []
    patch.setattr(Courier, "start", lambda _, receipt: sent.append(receipt))

    def ended(*_: object) -> list[Any]:
        receipts, sent[:] = sent[:], []
        return [(receipt, Verdict(Kind.DELIVERED, "")) for receipt in receipts]

    patch.setattr(Courier, "finished", ended)


def sign_with_another_secret(patch: Patch) -> None:
    patch.setattr("consumers.receipts.courier.Webhook", lambda _: Webhook(b"another secret"))


def send_other_rides(patch: Patch) -> None:
    genuine: Callable[[Known], Receipt] = Known.receipt.fget  # type: ignore[attr-defined]

    def another(known: Known) -> Receipt:
        receipt = genuine(known)
        return receipt._replace(distance=receipt.distance + Decimal("0.001"))

    patch.setattr(Known, "receipt", property(another))


def name_each_attempt_anew(patch: Patch) -> None:
    genuine: Callable[[Known], Receipt] = Known.receipt.fget  # type: ignore[attr-defined]

    def another(known: Known) -> Receipt:
        return genuine(known)._replace(webhook_id=secrets.token_hex())

    patch.setattr(Known, "receipt", property(another))
    save = outcomes.SAVE.replace(f"ended.webhook_id = {WEBHOOK_ID}", "true")
    patch.setattr("consumers.receipts.outcomes.SAVE", save)


def give_up_at_once(patch: Patch) -> None:
    dead = outcomes.SAVE.replace("kind = 'retry' AND", "kind = 'retry' OR")
    patch.setattr("consumers.receipts.outcomes.SAVE", dead)


SABOTAGE: list[tuple[Callable[[World], Findings], Callable[[Patch], None], list[str]]] = [
    (two_batches, write_nothing, ["the minute 12:00 is missing; it has 2 rides, of 3.000 m"]),
    (
        two_batches,
        mark_new_minutes_alone,
        [
            "the minute 12:00 says 1 rides of 1.000 m, not 2 rides of 3.000 m",
            "the minute 12:00 is labelled 1, but has ride 2",
        ],
    ),
    (
        two_batches,
        leave_all_dirty,
        ["1 minutes are left dirty", "the rollup is complete to ride 0, not 2"],
    ),
    (two_batches, run_ahead, ["the rollup is complete to ride 3, not 2"]),
    (
        a_receiver_at_work,
        save_nothing,
        ["ride 1 has no outcome", "receipts are complete to ride 0"],
    ),
    (a_receiver_at_work, acknowledge_nothing, ["3 entries are left pending"]),
    (
        a_receiver_at_work,
        send_nothing,
        [
            "ride 2 is called delivered, but nobody has accepted its receipt",
            "the receipt of ride 3 is called delivered, but is always refused",
        ],
    ),
    (
        a_receiver_at_work,
        sign_with_another_secret,
        [
            "what is no receipt (WebhookVerificationError: No matching signature found)",
            "the receipt of ride 1 is dead, and was not meant to be",
        ],
    ),
    (
        a_receiver_at_work,
        send_other_rides,
        ["the receiver was sent a receipt of ride 1 of 1.001 m at 2026-11-22 12:00:30+00:00"],
    ),
    (
        a_receiver_that_fails,
        name_each_attempt_anew,
        ["the receipt of ride 1 came under two webhook-ids"],
    ),
    (
        a_receiver_that_fails,
        give_up_at_once,
        ["the receipt of ride 1 is dead, and was not meant to be"],
    ),
    (a_flushed_log, look_for_nothing, ["ride 1 has no outcome"]),
]


@pytest.mark.parametrize(("scenario", "sabotage", "expected"), SABOTAGE)
def test_sabotage_is_reported(
    world: World,
    monkeypatch: Patch,
    scenario: Callable[[World], Findings],
    sabotage: Callable[[Patch], None],
    expected: list[str],
) -> None:
    sabotage(monkeypatch)
    found = "\n".join(scenario(world))
    for sentence in expected:
        assert sentence in found


@pytest.mark.parametrize("scenario", dict.fromkeys(scenario for scenario, _, _ in SABOTAGE))
def test_the_same_without_sabotage_is_found_to_be_right(
    world: World, monkeypatch: Patch, scenario: Callable[[World], Findings]
) -> None:
    monkeypatch.setattr(f"{__name__}.LONGEST", PATIENCE)
    assert scenario(world) == []
