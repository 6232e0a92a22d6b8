"""The network that chaos breaks."""

import random
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from chaos.proxy import Proxy
from rocket_rides.settings import EMBEDDED_PORT
from tests.support.world import World


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
