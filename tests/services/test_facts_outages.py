"""Servers that are away: it is said which and why, in time; and they are asked again."""

import socket
import time
from typing import Any

import psutil
import psycopg
import pytest
import redis

from tests.support import rollup
from tests.support.disasters import limited_redis, stopped
from tests.support.looks import answered, look, looking, patient, reader, said
from tests.support.world import World, eventually
from unified_log.errors import Unavailable
from unified_log.log import Log
from unified_log.log.replies import LARGEST
from watch import asking_postgres, asking_redis
from watch.asking_postgres import AskingPostgres
from watch.asking_redis import TIMEOUT, AskingRedis
from watch.facts import NO_ANSWER, Facts
from watch.gathering import PATIENCE, Gatherer

MARGIN = 20.0  # seconds that a busy machine may take in addition; a hang would last longer


def in_time(gatherer: Gatherer) -> Facts:
    began = time.monotonic()
    facts = gatherer.gather()
    assert time.monotonic() - began < PATIENCE + MARGIN
    return facts


def away(facts: Facts) -> set[str]:
    """The servers that are, each with a reason in one line."""
    servers = {"Postgres": facts.postgres, "Redis": facts.redis}
    for server in servers.values():
        assert server.up != bool(server.reason)
        assert "\n" not in server.reason
    assert facts.postgres.up == (facts.database is not None)
    assert facts.redis.up == (facts.log is not None)
    return {name for name, server in servers.items() if not server.up}


def in_the_end(gatherer: Gatherer, *gone: str) -> Facts:
    """The facts once these servers are away, or none is. One that is not may be late at times."""

    def facts() -> Facts | None:
        found = in_time(gatherer)
        return found if away(found) == set(gone) else None

    return eventually(facts, f"a look that misses {gone or 'no server'}")


def test_a_redis_that_hangs_dies_and_comes_back(world: World) -> None:
    world.consumer()
    with looking(world) as gatherer, redis.Redis.from_url(world.redis.url) as control:
        in_the_end(gatherer)
        with stopped(control.info("server")["process_id"]):
            for _ in range(2):
                facts = in_the_end(gatherer, "Redis")
            assert facts.redis.reason == "it does not answer"
            # What Postgres knows is shown all the same.
            assert reader(said(facts), "consumer0").ride == world.start
            assert said(facts).receipts.pending == 0
            assert said(facts).rollup.dirty_minutes is None
        in_the_end(gatherer)
        world.redis.kill()
        in_the_end(gatherer, "Redis")
        world.redis.start()
        in_the_end(gatherer)


def test_a_huge_entry_is_not_taken_for_a_redis_that_hangs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log's length is told, and the command that takes so long is not sent again at once."""
    asked = []

    class Busy(Log):
        def command(self, *words: object) -> Any:
            if words[0] == "XINFO":
                asked.append(words)
                words = ("BLPOP", "nothing", 0)  # it takes too long
                connection: Any = self._connection
                connection._sock.settimeout(TIMEOUT)
            return super().command(*words)

    patient(monkeypatch)  # with the other commands, which take long on a busy machine alone
    monkeypatch.setattr(asking_redis, "Log", Busy)
    asking = AskingRedis(world.redis.url, world.stream)
    world.send(*[1] * 5)
    for expected in (5, 6, 7):
        facts = asking.ask()
        assert facts
        assert (facts.length, len(asked)) == (expected, 1)
        world.send(1)
    asking.close()


def test_a_redis_that_dies_with_a_huge_entry_in_it_is_missed_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient(monkeypatch)
    asking = AskingRedis(world.redis.url, world.stream)
    world.log().command("XADD", world.stream, "*", "junk", b"j" * LARGEST)
    assert asking.ask()
    world.redis.kill()
    try:
        with pytest.raises(redis.ConnectionError):
            asking.ask()
    finally:
        world.redis.start()


def test_a_postgres_that_hangs_dies_and_comes_back(own_world: World) -> None:
    world = own_world
    with looking(world) as gatherer:
        in_the_end(gatherer)
        postmaster = psutil.Process(world.postgres.pid)
        pids = [postmaster.pid, *(child.pid for child in postmaster.children())]
        with stopped(*pids):
            facts = in_the_end(gatherer, "Postgres")
            assert facts.postgres.reason == "it does not answer"
        in_the_end(gatherer)
        world.postgres.kill()
        assert in_the_end(gatherer, "Postgres").log is not None
        world.postgres.start()
        assert said(in_the_end(gatherer)).rides.newest == 0


def test_a_postgres_that_takes_long_to_set_a_session_up_is_busy_and_not_away(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is asked again for some seconds, as one that takes long to answer a question.

    Whichever of the first statements that is: an answer may be there at once.
    """
    monkeypatch.setattr(asking_postgres, "TIMEOUT", 0)
    asking = AskingPostgres(world.postgres_url)
    with pytest.raises((Unavailable, psycopg.Error), match="wait timeout expired") as late:
        asking.ask()
    assert asking_postgres.reason(late.value) == NO_ANSWER


def test_what_hangs_in_a_library_is_not_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the look-up of a name may, which no time-out of a connection ends."""
    monkeypatch.setattr(AskingRedis, "ask", lambda _: time.sleep(4))
    with looking(world) as gatherer:
        assert in_time(gatherer).redis.reason == "it does not answer"


def test_both_servers_may_hang_and_still_it_is_told_in_time(world: World) -> None:
    """A listener that takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        nobody = f"127.0.0.1:{listener.getsockname()[1]}"
        urls = {"database_url": f"postgresql://x@{nobody}/x", "redis_url": f"redis://{nobody}"}
        with looking(world, **urls) as gatherer:
            assert away(in_time(gatherer)) == {"Postgres", "Redis"}


def test_another_schema_is_said_to_be_the_reason(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient(monkeypatch)
    with looking(world) as gatherer:
        world.connection.execute("DELETE FROM schema_versions WHERE component = 'rocket_rides'")
        assert "the database's schema is of an earlier design" in answered(gatherer).postgres.reason
        world.connection.execute("DROP TABLE alembic_version")
        reason = answered(gatherer).postgres.reason
        assert "the database's schema is empty" in reason
        assert "python -m migrations" in reason


def test_a_database_without_its_state_says_how_it_is_repaired(world: World) -> None:
    world.connection.execute("DELETE FROM streamer_state")
    reason = look(world).postgres.reason
    assert "streamer_state is empty" in reason
    assert "INSERT INTO streamer_state" in reason


def test_what_redis_forbids_is_unknown_and_nothing_else_is(world: World) -> None:
    rollup.lead(world).run_once(wait=0)  # makes an Ick
    world.send(*[1] * 10)
    for command in ("xinfo", "time", "memory", "zcard"):
        with limited_redis(world, command) as url:
            facts = look(world, redis_url=url)
        assert facts.redis.up
        database = said(facts)
        assert (facts.log is None) == (command in ("xinfo", "time"))
        assert facts.log is None or (facts.log.bytes == 0) == (command == "memory")
        assert (database.rollup.dirty_minutes is None) == (command == "zcard")
        assert database.receipts.pending == 10
