"""Faults of the network: it is slow, carries one direction only, or loses connections.

A process that gives up waiting connects again over the same network. Meanwhile its old session
lives on in the server, with its locks, and its last request may still arrive.
"""

import random
from contextlib import closing

from lab.chaos.faults.scene import Scene, held, moot_if_away
from lab.chaos.fleet import SERVERS
from lab.chaos.proxy import Proxy, Way
from lab.chaos.receiver import FAILURES

DELAYS = (0.002, 0.02, 0.1)  # seconds; the most that a piece of data is delayed
BACKENDS = """
    SELECT pid FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND application_name <> 'chaos' ORDER BY pid
"""


def _network(scene: Scene, dice: random.Random) -> tuple[str, Proxy]:
    name = dice.choice(SERVERS)
    return name, scene.fleet.pairs[name].proxy


def cut(scene: Scene, dice: random.Random) -> str:
    """Cut all connections to one server, or about half of them, up to four times in a row."""
    name, proxy = _network(scene, dice)
    share = dice.choice((0.5, 1))
    for _ in range(dice.randint(1, 4)):
        proxy.cut(lambda _: dice.random() < share)
        scene.wait(dice.uniform(0, 0.5))
    return name


def lose_answers(scene: Scene, dice: random.Random) -> str:
    """The server does what it is asked to, but its answers are lost."""
    name, proxy = _network(scene, dice)
    proxy.loses_answers = True
    scene.wait(dice.uniform(0.02, 1))
    proxy.loses_answers = False
    return name


def slow_down(scene: Scene, dice: random.Random) -> str:
    name, proxy = _network(scene, dice)
    longest, seconds = dice.choice(DELAYS), dice.uniform(1, 5)
    proxy.longest_delay = longest
    scene.wait(seconds)
    proxy.longest_delay = 0
    return f"{name} (up to {longest * 1000:.0f} ms)"


def hold_up(scene: Scene, dice: random.Random) -> str:
    """Hold up one direction for some seconds; then deliver, or cut the connections."""
    name, proxy = _network(scene, dice)
    way, seconds, deliver = dice.choice(list(Way)), dice.uniform(0.5, 8), dice.random() < 0.5
    proxy.hold_up(way)
    scene.wait(seconds)
    proxy.clear_up(way, deliver=deliver)
    return f"{name} ({way.value}, then {'delivered' if deliver else 'broken'})"


def terminate_backends(scene: Scene, dice: random.Random) -> str:
    """pg_terminate_backend for all sessions, or about half of them."""
    share = dice.choice((0.5, 1))
    with moot_if_away(), closing(scene.fleet.connect()) as connection:
        for (pid,) in connection.execute(BACKENDS).fetchall():
            if dice.random() < share:
                connection.execute("SELECT pg_terminate_backend(%s)", [pid])
    return "postgres"


def kill_clients(scene: Scene, _dice: random.Random) -> str:
    """CLIENT KILL for all connections but the replica's, including the onlookers'."""
    with moot_if_away(), scene.fleet.redis_client() as client:
        client.client_kill_filter(_type="normal", skipme=True)
    return "redis"


def fail_receipts(scene: Scene, dice: random.Random) -> str:
    """The receiver of receipts refuses, does not answer, hangs up, or is away for some seconds."""
    mood, seconds = dice.choice(FAILURES), dice.uniform(0.5, 4)
    receiver = scene.fleet.receiver
    with held(receiver.busy), receiver.failing(mood):
        scene.wait(seconds)
    return f"the receiver ({mood.value})"
