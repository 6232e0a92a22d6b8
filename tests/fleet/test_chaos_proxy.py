"""The network that chaos breaks."""

import random
import socket
import time
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from lab.chaos.proxy import HOST, Proxy, Way
from rocket_rides.settings import EMBEDDED_PORT
from tests.support.world import World, eventually


def test_a_connection_is_cut_in_the_middle(world: World) -> None:
    with proxied(world) as proxy, connect(world, proxy) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        proxy.cut(1, random.Random(0))
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_an_answer_is_lost_and_the_work_is_done(world: World) -> None:
    with proxied(world) as proxy, connect(world, proxy) as connection:
        proxy.lose_answers(True)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("INSERT INTO rides (distance) VALUES (5)")
    assert world.value("SELECT count(*) FROM rides") == 1


def test_a_server_that_is_down_is_down_behind_the_proxy_too(world: World, tmp_path: Path) -> None:
    proxy = Proxy(tmp_path / "nobody")
    with closing(Started(proxy)), pytest.raises(psycopg.OperationalError):
        connect(world, proxy)


def test_what_was_held_up_arrives_after_its_client_has_hung_up(world: World) -> None:
    with proxied(world) as proxy:
        insert_over_a_held_up(proxy, Way.REQUESTS, connect(world, proxy)).close()
        assert rides(world) == 0
        proxy.clear_up(Way.REQUESTS, deliver=True)
        eventually(lambda: rides(world) == 1, "the ride")


def test_what_was_held_up_is_lost_with_its_connection(world: World) -> None:
    with proxied(world) as proxy, connect(world, proxy) as idle:
        held = insert_over_a_held_up(proxy, Way.REQUESTS, connect(world, proxy))
        eventually(
            lambda: any(connection.waits for connection in [*proxy.connections]), "the request"
        )
        proxy.clear_up(Way.REQUESTS, deliver=False)
        with pytest.raises(psycopg.OperationalError):
            answer_to(held)
        assert idle.execute("SELECT count(*) FROM rides").fetchone() == (0,)


def test_an_answer_comes_when_the_way_back_is_free(world: World) -> None:
    with proxied(world) as proxy, closing(connect(world, proxy)) as connection:
        insert_over_a_held_up(proxy, Way.ANSWERS, connection)
        eventually(lambda: rides(world) == 1, "the ride")
        assert not has_answer(connection)
        proxy.clear_up(Way.ANSWERS, deliver=True)
        assert answer_to(connection) == psycopg.pq.ExecStatus.COMMAND_OK


def test_nothing_overtakes_anything_on_a_slow_network(world: World) -> None:
    with Started(Proxy(world.redis.socket)) as proxy:
        proxy.slow_down(0.003, random.Random(0))
        with socket.create_connection((HOST, proxy.port)) as connection:
            for number in range(200):
                connection.sendall(b"ECHO %d\r\n" % number)
            with connection.makefile() as answers:
                lines = [next(answers) for _ in range(2 * 200)]  # each after its length
        assert [int(line) for line in lines[1::2]] == [*range(200)]


def test_a_slow_network_takes_its_time_both_ways(world: World) -> None:
    with proxied(world) as proxy, connect(world, proxy) as connection:
        proxy.slow_down(0.05, Slowest())
        began = time.monotonic()
        connection.execute("SELECT 1")
        assert time.monotonic() - began > 0.099


class Slowest(random.Random):
    """Dice that always show the most."""

    def random(self) -> float:
        return 1.0


def insert_over_a_held_up(
    proxy: Proxy, way: Way, connection: psycopg.Connection
) -> psycopg.Connection:
    """Take a ride over a network that holds up this way, and don't wait for the answer."""
    proxy.hold_up(way)
    connection.pgconn.send_query(b"INSERT INTO rides (distance) VALUES (5)")
    assert connection.pgconn.flush() == 0
    return connection


def has_answer(connection: psycopg.Connection) -> bool:
    connection.pgconn.consume_input()
    return not connection.pgconn.is_busy()


def answer_to(connection: psycopg.Connection) -> int | None:
    """Its status. Only asks libpq for it when it is there: libpq would keep the proxy waiting."""
    eventually(lambda: has_answer(connection), "the answer")
    result = connection.pgconn.get_result()
    return result.status if result else None


def rides(world: World) -> int:
    return int(world.value("SELECT count(*) FROM rides"))


class Started:
    """A proxy that has started, until it is closed."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        proxy.start()

    def __enter__(self) -> Proxy:
        return self.proxy

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.proxy.stop()


def proxied(world: World) -> Started:
    return Started(Proxy(world.postgres.sockets / f".s.PGSQL.{EMBEDDED_PORT}"))


def connect(world: World, proxy: Proxy) -> psycopg.Connection:
    database = world.postgres_url.rpartition("/")[2].partition("?")[0]
    return psycopg.connect(
        f"postgresql://postgres@127.0.0.1:{proxy.port}/{database}", autocommit=True
    )
