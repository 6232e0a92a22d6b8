"""Connections end in the middle of anything, cut by the network or by the servers."""

import random
from contextlib import closing

import psycopg
import redis

from lab.chaos.faults.scene import Moot, Scene
from lab.chaos.proxy import Proxy
from rocket_rides.errors import Unavailable

BACKENDS = """
    SELECT pid FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND application_name <> 'chaos' ORDER BY pid
"""


def pick_proxy(scene: Scene, dice: random.Random) -> tuple[str, Proxy]:
    """The network to one of the servers."""
    name = dice.choice(("postgres", "redis"))
    fleet = scene.fleet
    return name, fleet.postgres_proxy if name == "postgres" else fleet.redis_proxy


def cut(scene: Scene, dice: random.Random) -> str:
    """Cut all connections to one server, or about half of them, up to four times in a row."""
    name, proxy = pick_proxy(scene, dice)
    share = dice.choice((0.5, 1))
    for _ in range(dice.randint(1, 4)):
        proxy.cut(share, dice)
        scene.wait(dice.uniform(0, 0.5))
    return name


def lose_answers(scene: Scene, dice: random.Random) -> str:
    """The server does what it is asked to, but no answer arrives: was it done?"""
    name, proxy = pick_proxy(scene, dice)
    proxy.lose_answers(True)
    scene.wait(dice.uniform(0.02, 1))
    proxy.lose_answers(False)
    return name


def terminate_backends(scene: Scene, dice: random.Random) -> str:
    """pg_terminate_backend for all sessions, or about half of them."""
    share = dice.choice((0.5, 1))
    try:
        with closing(scene.fleet.connect()) as connection:
            for (pid,) in connection.execute(BACKENDS).fetchall():
                if dice.random() < share:
                    connection.execute("SELECT pg_terminate_backend(%s)", [pid])
    except (psycopg.Error, Unavailable):
        raise Moot from None
    return "postgres"


def kill_clients(scene: Scene, _dice: random.Random) -> str:
    """CLIENT KILL for all connections, including the onlookers'."""
    try:
        with scene.fleet.redis_client() as client:
            client.client_kill_filter(_type="normal", skipme=True)
    except redis.RedisError:
        raise Moot from None
    return "redis"
