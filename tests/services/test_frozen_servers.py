"""The fleet beside a server that is frozen: it says so, and goes on by itself.

The kernel of such a server goes on taking connections, and acknowledging what is sent.
"""

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from sqlalchemy import text

from api import booking
from api.database import Database
from api.writing import TryLater
from demo.embedded.servers import Redis
from lab.chaos.postgres_pair import PostgresPair
from rocket_rides.settings import EMBEDDED_PORT
from tests.support.api import MAYBE_TAKEN, NOT_TAKEN, Api, is_problem
from tests.support.clusters import postgres_pair, world_on
from tests.support.disasters import stopped
from tests.support.engine import opened
from tests.support.receipts import SECRET
from tests.support.rollup import is_complete
from tests.support.world import World, eventually

KEY = {"Idempotency-Key": "k"}
READERS = {"consumers.totals": ["consumer0"], "consumers.rollup": [], "consumers.receipts": ["one"]}
RECEIPTS = {"RECEIPT_URL": "http://127.0.0.1:1", "RECEIPT_SECRET": SECRET}


class Two(NamedTuple):
    """A world whose URL names both servers of a pair."""

    world: World
    pair: PostgresPair

    def freeze(self) -> None:
        """Freeze the primary; its standby has all that it has answered."""
        self.pair.wait_for_standby()
        self.pair.catch_up()
        self.pair.primary.freeze()
        self.world.own_connection = None

    def promote(self) -> None:
        self.pair.promote()
        eventually(lambda: self.world.value("SELECT pg_is_in_recovery()::int") == 0)


@pytest.fixture
def two(prepared: Path, redis: Redis, tmp_path: Path) -> Iterator[Two]:
    with postgres_pair(prepared) as pair:
        one, other = pair.servers
        url = (
            f"postgresql://postgres@/rocket_rides?host={one.sockets},{other.sockets}"
            f"&port={EMBEDDED_PORT}&target_session_attrs=read-write"
        )
        try:
            with world_on(one, redis, one.sockets.parent.name, tmp_path, url) as world:
                yield Two(world, pair)
        finally:
            one.crash(0, for_good=True)  # it may be frozen


def test_a_fleet_says_so_in_time_and_goes_on_with_the_server_that_took_over(two: Two) -> None:
    """Whoever asked the API meanwhile may repeat it, and the ride is taken once.

    Only one session of a worker waits: the others, which were idle, are replaced before their use.
    """
    world, api = two.world, Api(two.world)
    fleet = [world.service("streamer")]
    fleet += [world.service(module, *given, **RECEIPTS) for module, given in READERS.items()]
    answers = [api.post(), api.post(5, **KEY)]
    assert [answer.status_code for answer in answers] == [201, 201]
    eventually(lambda: world.standing() == world.truth and is_complete(world))
    with opened(world, api_connections=4) as database:
        with ExitStack() as together:
            for _ in range(4):
                connection = together.enter_context(database.connect())
                connection.execute(text("SELECT 1"))
        two.freeze()
        assert is_problem(api.post(5, **{"Idempotency-Key": "another"}), 503, MAYBE_TAKEN)
        assert is_problem(api.post(), 503, NOT_TAKEN)  # it opens a session, rather than wait on one
        api.service.says("answers 503: the connection to the database was lost")
        assert is_problem(api.client.get("/consumers"), 503)
        with pytest.raises(TryLater, match="lost; the ride may have been taken"):
            booking.take(database, Decimal(5), None)
        with pytest.raises(TryLater, match="can't be reached; the ride was not taken"):
            booking.take(database, Decimal(5), None)
        for process in fleet:
            process.says("Postgres does not answer: ")
        two.promote()
        eventually(lambda: is_taken(database), "a ride on the other server")

    def taken(key: str) -> httpx.Response | None:
        answer = api.post(5, **{"Idempotency-Key": key})
        return answer if answer.status_code == 201 else None

    eventually(lambda: taken("another"), "a ride on the other server")
    again = eventually(lambda: taken("k"), "an answer about the ride before")
    assert again.json()["ride"] == answers[1].json()["ride"]
    assert world.truth[1] == 20
    eventually(lambda: world.standing() == world.truth and is_complete(world))
    for process in fleet:
        assert process.stop() == 0
        assert "Traceback" not in process.output.read_text()


def is_taken(database: Database) -> bool:
    with suppress(TryLater):
        return booking.take(database, Decimal(5), None).distance == 5
    return False


def test_a_frozen_redis_is_said_and_waited_for(world: World) -> None:
    fleet = [world.service("streamer")]
    fleet += [world.service(module, *given, **RECEIPTS) for module, given in READERS.items()]
    world.take(1)
    eventually(lambda: world.standing() == world.truth and is_complete(world))
    with stopped(world.redis.pid):
        world.take(2)
        for process in fleet:
            process.says("Timeout reading from ")
    eventually(lambda: world.standing() == world.truth and is_complete(world))
