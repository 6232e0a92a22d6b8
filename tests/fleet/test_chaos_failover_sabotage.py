"""The proof can fail, for fail-overs: each one that keeps less than it promises is reported.

Every scenario is also played unbroken: then the judge of the books has nothing to say.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest
import redis

from consumers.totals.total import Total
from demo.embedded.servers import Redis
from lab.chaos.books import statements
from lab.chaos.journal import Answer, Ask
from lab.chaos.postgres_pair import PostgresPair
from lab.chaos.redis_pair import RedisPair
from lab.chaos.restore import Restore
from rocket_rides.log import Log
from streamer.drain import Streamer
from tests.support.pairs import postgres_pair, redis_pair, world_on_pair
from tests.support.sabotage import Patch, heal_nothing
from tests.support.scenarios import findings
from tests.support.world import Consumer, World, catch_up, drain


def take(world: World, distance: int) -> Ask:
    """A ride that was asked for and answered."""
    asked = time.monotonic()
    [ride] = world.take(distance)
    answer = Answer(ride, Decimal(distance), asked, time.monotonic())
    return Ask(answer.distance, whole=True, asked_at=asked, answers=[answer])


def postgres_fails_over(world: World, pair: PostgresPair, *, waits: bool) -> list[str]:
    """A ride is taken when the standby has caught up, and the primary crashes."""
    if waits:
        pair.wait_for_standby()
    asks = [take(world, 1), take(world, 2)]
    began = time.monotonic()
    pair.catch_up()
    if not waits:
        pair.cut_off()
    asks.append(take(world, 100))
    drain(world.streamer())
    killed = time.monotonic()
    pair.primary.crash(0, pair.promote)
    asks.append(take(world, 4))
    drain(world.streamer())
    catch_up(world.consumer())
    restores = [] if waits else [Restore(began, killed)]
    return findings(world, asks, restores=restores)


def cut_the_standby_off_in_secret(patch: Patch) -> None:
    """Nor does the primary wait for it, or it would answer nothing."""
    catch_up = PostgresPair.catch_up

    def and_cut_off(pair: PostgresPair) -> None:
        catch_up(pair)
        pair.cut_off()

    patch.setattr(PostgresPair, "wait_for_standby", lambda _: None)
    patch.setattr(PostgresPair, "catch_up", and_cut_off)


def excuse_nothing(patch: Patch) -> None:
    patch.setattr(Restore, "may_undo", lambda *_: False)


@pytest.mark.parametrize("broken", [True, False], ids=["broken", "sound"])
@pytest.mark.parametrize(
    ("waits", "sabotage"), [(True, cut_the_standby_off_in_secret), (False, excuse_nothing)]
)
def test_what_a_promoted_standby_lacks_is_reported(
    prepared: Path,
    redis: Redis,
    tmp_path: Path,
    monkeypatch: Patch,
    waits: bool,
    sabotage: Callable[[Patch], None],
    broken: bool,
) -> None:
    if broken:
        sabotage(monkeypatch)
    with postgres_pair(prepared) as pair, world_on_pair(pair, redis, tmp_path) as world:
        found = "\n".join(postgres_fails_over(world, pair, waits=waits))
    if broken:
        assert "a ride of 100 m was answered (as [3]) and is lost" in found
    else:
        assert found == ""


def redis_fails_over(world: World, pair: RedisPair, *, waits: bool) -> list[str]:
    """The replica is cut off, two more rides are sent, and it is promoted."""

    def log() -> Log:
        world.logs.append(Log(pair.primary.url, world.stream, replicas=int(waits)))
        return world.logs[-1]

    def send() -> None:
        with suppress(redis.ConnectionError):  # too few replicas
            drain(Streamer(world.connect(), log()))

    asks = [take(world, 1)]
    send()
    pair.join()
    pair.cut_off()
    asks += [take(world, 20), take(world, 30)]
    send()
    pair.promote()
    pair.join()
    asks.append(take(world, 4))
    send()
    catch_up(Consumer(log(), Total(world.connect(), "consumer0")))
    whole = [statements.HEALED] if waits else []
    return findings(world, asks, settled=[statements.COUNTED, *whole])


def do_not_wait(patch: Patch) -> None:
    patch.setattr(Log, "wait_for_replicas", lambda _: None)


@pytest.mark.parametrize(
    ("waits", "sabotage", "expected"),
    [
        (True, do_not_wait, "consumer0 healed 2 rides in 1 gaps of a whole log"),
        (False, heal_nothing, "consumer0's total is 5.000 m, not 55.000 m (-50.000 m)"),
    ],
)
def test_what_a_promoted_replica_lacks_is_reported(
    world: World, waits: bool, sabotage: Callable[[Patch], None], expected: str
) -> None:
    with redis_pair("valkey") as pair, pytest.MonkeyPatch.context() as patch:
        sabotage(patch)
        assert expected in "\n".join(redis_fails_over(world, pair, waits=waits))


@pytest.mark.parametrize("waits", [True, False])
def test_the_same_without_sabotage_is_found_to_be_right(world: World, waits: bool) -> None:
    with redis_pair("valkey") as pair:
        assert redis_fails_over(world, pair, waits=waits) == []
