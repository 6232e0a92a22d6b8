"""Redis and Postgres fail over: what was answered, or committed as sent, is kept or healed."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
import redis

from consumers.totals.total import Total
from demo.embedded.servers import Redis
from lab.chaos.postgres_pair import PostgresPair, connect
from lab.chaos.redis_pair import client
from tests.support.api import Api
from tests.support.clusters import postgres_pair, redis_pair, world_on_pair
from tests.support.world import Consumer, World, drain, eventually, exact, take
from unified_log.log import Log
from unified_log.streamer.drain import Streamer

WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@pytest.fixture
def postgreses(prepared: Path) -> Iterator[PostgresPair]:
    with postgres_pair(prepared) as pair:
        yield pair


def test_with_wait_a_promoted_replica_has_all_that_was_committed_as_sent(world: World) -> None:
    with redis_pair() as pair:

        def log() -> Log:
            """On whichever server is the primary now."""
            return world.exits.enter_context(Log(pair.primary.url, world.stream, replicas=1))

        def is_sent() -> bool:
            """A replica that is late is asked again, as by the streamer."""
            try:
                drain(Streamer(world.connect(), log()))
            except redis.ConnectionError:
                return False
            return True

        world.take(1, 2)
        eventually(is_sent, "a replica that has the batch")
        pair.cut_off()
        alone = log()
        leader = Streamer(world.connect(), alone)
        world.take(3, 4)
        with pytest.raises(redis.ConnectionError, match="Redis: 0 of 1 replicas"):
            drain(leader)
        assert world.staged() == 2
        with client(pair.replica) as replica:
            assert replica.xlen(world.stream) < alone.length()
        pair.promote()
        pair.join()
        eventually(is_sent, "a replica that has the batch")
        reader = Consumer(log(), Total(world.connect(), "consumer0"))
        assert reader.run_once().healed == []
        assert exact(world, reader)


def test_a_leader_without_its_replicas_begins_no_term_and_appends_nothing(world: World) -> None:
    """Else each attempt, after each of its failures, would leave a batch in the log."""
    world.take(1)
    world.service("streamer", LOG_REPLICAS="1").says("0 of 1 replicas have the log")
    assert world.staged() == 1
    assert world.records() == []
    assert world.value("SELECT count(*) FROM terms") == 0


@pytest.mark.parametrize("commit", ["remote_write", "local"])
def test_a_promoted_standby_has_what_was_answered_if_it_was_waited_for(
    postgreses: PostgresPair, redis: Redis, tmp_path: Path, commit: str
) -> None:
    """It is cut off where `synchronous_commit` does not wait for it.

    Each is the weakest setting that waits for it, or the strongest that does not.
    """
    synchronous = commit == "remote_write"
    with world_on_pair(postgreses, redis, tmp_path) as world:
        postgreses.wait_for_standby()
        kept = world.take(1, 2)
        postgreses.catch_up()
        if not synchronous:
            postgreses.cut_off()
        answered = kept + take(world.connect(synchronous_commit=commit), 3)
        drain(Streamer(world.connect(synchronous_commit=commit), world.log()))
        postgreses.primary.crash(0, postgreses.promote)
        rides = [ride for (ride,) in world.connection.execute("SELECT id FROM rides ORDER BY id")]
        assert rides == (answered if synchronous else kept)
        world.send(10)
        assert exact(world)


class Alone(NamedTuple):
    """An API whose primary waits for a standby that is cut off, and a client that may wait, too."""

    world: World
    api: Api
    client: ThreadPoolExecutor
    pair: PostgresPair

    def post(self, key: str) -> httpx.Response:
        return self.api.post(5, **{"Idempotency-Key": key})

    def post_in_vain(self, key: str) -> Future[httpx.Response]:
        """Post a ride, whose commit then waits."""
        asked = self.client.submit(self.post, key)
        eventually(lambda: waiting(self.pair))
        return asked

    def end_wait(self, asked: Future[httpx.Response], how: str) -> None:
        """The function `how` ends the wait; then a replay waits, and nobody is answered."""
        taking = waiting(self.pair)
        with connect(self.pair.primary) as primary:
            primary.execute(f"SELECT {how}(%s)", taking)
        eventually(lambda: asked.done() or waiting(self.pair) not in ([], taking), "a replay")
        assert not asked.done()

    def bring_back(self) -> None:
        self.pair.link.server = self.pair.primary.socket


@pytest.fixture(scope="module")
def together(
    prepared: Path,
    redis_of_kind: Callable[[str], Redis],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Alone]:
    folder, redis = tmp_path_factory.mktemp("alone"), redis_of_kind("valkey")
    with (
        postgres_pair(prepared) as pair,
        world_on_pair(pair, redis, folder) as world,
        ThreadPoolExecutor(1) as client,
    ):
        # The warning that a wait was cancelled comes all the same.
        world.connection.execute("ALTER DATABASE rocket_rides SET client_min_messages = error")
        yield Alone(world, Api(world), client, pair)


@pytest.fixture
def alone(together: Alone) -> Alone:
    together.pair.wait_for_standby()
    together.pair.cut_off()
    return together


def test_a_ride_whose_wait_was_cancelled_is_not_answered_before_the_standby_has_it(
    alone: Alone,
) -> None:
    """Postgres then ends the commit with no more than a warning."""
    asked = alone.post_in_vain("cancelled")
    alone.end_wait(asked, "pg_cancel_backend")
    alone.bring_back()
    answer = asked.result()
    assert answer.status_code == 201
    assert answer.headers["Idempotent-Replayed"] == "true"


def test_a_retry_beside_a_request_that_waits_does_not_say_that_there_is_no_ride(
    alone: Alone,
) -> None:
    first = alone.post_in_vain("beside")
    retry = alone.post("beside")
    assert retry.status_code == 503
    assert retry.json()["type"] == "/openapi.json#ride-maybe-taken"
    alone.bring_back()
    assert first.result().status_code == 201


def test_a_primary_without_its_standby_does_not_say_that_a_ride_to_rate_is_not_there(
    alone: Alone,
) -> None:
    """Another may have been promoted and have the ride, while this one was frozen."""
    post = alone.api.client.post
    asked = alone.client.submit(post, "/rides/99/rating", data={"stars": "3"})
    eventually(lambda: asked.done() or waiting(alone.pair), "an answer, or a wait")
    assert not asked.done()
    alone.bring_back()
    assert asked.result().status_code == 404


def test_a_replay_is_answered_once_the_standby_has_the_ride(alone: Alone) -> None:
    """The session that took it was ended while it waited: the ride is there, on the primary alone.

    So the same request finds it; and that must wait, too. This ends the pair.
    """
    before = alone.world.truth[1]
    asked = alone.post_in_vain("replay")
    alone.end_wait(asked, "pg_terminate_backend")
    alone.pair.primary.crash(0, alone.pair.promote)
    asked.result()
    answer = eventually(lambda: alone.post("replay"), "an answer")
    assert answer.status_code == 201
    assert alone.world.truth == (answer.json()["ride"]["id"], before + 5)


def waiting(pair: PostgresPair) -> list[int]:
    with connect(pair.primary) as primary:
        return [pid for (pid,) in primary.execute(WAITING)]
