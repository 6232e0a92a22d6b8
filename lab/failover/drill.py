"""A fleet under load, and eight faults of its primaries: Patroni and Sentinel alone decide."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import migrations
from lab.balancer import AWAY
from lab.books import closed
from lab.chaos.clients import Crowd
from lab.chaos.evidence import Evidence
from lab.failover.node import Node
from lab.failover.patroni import Postgres
from lab.failover.sentinel import Redis, client
from lab.pauses import Pauses, longest
from lab.progress import progress
from lab.stage import Stage
from lab.until import until
from rocket_rides.settings import DATABASE_NAME
from unified_log import database

Cluster = Postgres | Redis
FAULTS: Mapping[str, Callable[[Cluster, Node], None]] = {
    "switchover": lambda cluster, primary: cluster.switch_over(primary),
    "killed": lambda cluster, primary: primary.kill(cluster.server),
    "frozen": lambda _, primary: primary.freeze(),
    "cut off": lambda _, primary: primary.host.cut_off(),
}
LIMIT = 60.0  # seconds until another is elected, and then until a ride is taken and counted
WHOLE = 120.0  # seconds until an old primary follows the new one
CALM = 5.0  # seconds before and after each fault
NEVER = "never"


class Seen(NamedTuple):
    fault: str
    elected: str
    refused: float  # the longest time without a 201, in seconds
    stood: float  # the longest pause of a total


class Drill:
    """The servers, the fleet and its clients. Methods raise TimeoutError."""

    def __init__(self, stage: Stage, folder: Path, programs: Path, rate: float) -> None:
        self._postgres, self._redis = Postgres(folder, programs), Redis(folder)
        self._clusters: tuple[Cluster, ...] = (self._postgres, self._redis)
        self.seen: list[Seen] = []
        self._stage, self._rate = stage, rate
        self._say = progress()

    def run(self) -> Evidence:
        self._start()
        for cluster, fault in product(self._clusters, FAULTS):
            self.seen.append(self._play(cluster, fault))
        self._say("waiting until everything is counted and delivered")
        self._crowd.end()
        log = client(self._whole(self._redis))
        return closed(self._stage, lambda: log, [*self._onlookers.values()])

    def _start(self) -> None:
        for node in (*self._postgres.nodes, *self._redis.nodes):
            self._stage.exits.callback(node.end)
            node.start()
        for cluster in self._clusters:
            self._whole(cluster)
        self._say("the servers are there")
        with database.connect(self._postgres.url(name="postgres"), "drill") as session:
            session.execute(f"CREATE DATABASE {DATABASE_NAME}")
        migrations.upgrade(self._postgres.url())
        self._stage.settings |= {"DATABASE_URL": self._postgres.url(), "REDIS_URL": self._redis.url}
        self._stage.start()
        self._crowd = Crowd(0, self._stage.balancer.port, self._rate, self._stage.journal, AWAY)
        # A replica shows what it has applied, so the next primary has seen the totals all along.
        nodes = self._postgres.nodes
        self._onlookers = {node.name: Pauses(partial(self._postgres.url, node)) for node in nodes}
        for onlooker in self._onlookers.values():
            onlooker.start()
        self._crowd.start()
        self._say("the fleet is at work")

    def _play(self, cluster: Cluster, name: str) -> Seen:
        """Have one fault strike the primary, undo it, and wait until all is as before."""
        primary, totals = self._whole(cluster), self._onlookers[self._whole(self._postgres).name]
        # A server that was killed may be restarted before another one is elected.
        eligible = [node for node in cluster.nodes if node is not primary or name == "killed"]
        elected = NEVER
        time.sleep(CALM)
        self._say(f"{cluster.name}: {primary.name} {name}")
        began = time.monotonic()
        FAULTS[name](cluster, primary)
        with suppress(TimeoutError):  # it stands in the table, and is undone
            leader = until(lambda: next(filter(cluster.leads, eligible), None), "", LIMIT, 0.1)
            now = time.monotonic()
            elected = f"{now - began:.1f} s{', itself again' * (leader is primary)}"
            self._say(f"{leader.name} leads")
            totals = self._onlookers.get(leader.name, totals)
            until(lambda: self._goes_on(totals, now), "", LIMIT)
        primary.recover()
        self._whole(cluster)
        time.sleep(CALM)
        ended = time.monotonic()
        stood = max(totals.longest(began, ended).values())
        refused = longest(self._answered(), began, ended)
        return Seen(f"{cluster.name}: {name}", elected, refused, stood)

    def _whole(self, cluster: Cluster) -> Node:
        def primary() -> Node | None:
            return next(filter(cluster.is_whole, filter(cluster.leads, cluster.nodes)), None)

        return until(primary, f"{cluster.name} is not whole after {WHOLE:.0f} s", WHOLE, poll=0.5)

    def _goes_on(self, totals: Pauses, since: float) -> bool:
        moves = (self._answered(), *totals.moves.values())
        return all(max(each, default=since) > since for each in moves)

    def _answered(self) -> list[float]:
        return sorted(answer.came for ask in self._stage.journal.asks for answer in ask.answers)
