"""One drill: a fleet under load, and eight faults of its servers' primaries, one after another.

Nobody but Patroni and Sentinel decides what comes of a fault.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from redis import Redis as Client

import migrations
from lab.chaos.books.statements import WHEN_SETTLED
from lab.chaos.books.tables import broken, is_settled, left_over
from lab.chaos.clients import Crowd
from lab.chaos.drifts import TABLE
from lab.chaos.evidence import Evidence, Journal, read_final_state
from lab.chaos.fleet import STREAM
from lab.failover.node import Node
from lab.failover.patroni import Postgres
from lab.failover.sentinel import Redis, client
from lab.pauses import Pauses, longest
from lab.progress import Progress
from lab.stage import Stage
from lab.until import until
from rocket_rides.settings import DATABASE_NAME
from unified_log import database

Cluster = Postgres | Redis
FAULTS: Mapping[str, Callable[[Cluster, Node], None]] = {
    "switchover": lambda cluster, primary: cluster.switch_over(primary),
    "killed": lambda cluster, primary: cluster.kill(primary),
    "frozen": lambda _, primary: primary.freeze(),
    "cut off": lambda _, primary: primary.cut_off(),
}
LIMIT = 60.0  # seconds until another is elected, and then until a ride is taken and counted
WHOLE = 120.0  # seconds until an old primary has returned
SETTLE = 120.0  # seconds until everything is counted and delivered
CALM = 5.0  # seconds before and after each fault


class Seen(NamedTuple):
    """What came of a fault, in seconds; None is never, or not before the fault was undone."""

    fault: str
    elected: float | None
    again: bool  # it was the same node
    refused: float  # the longest time without a 201
    stood: float  # the longest time that a total stood still
    went_on: bool  # while the fault lasted


class Drill:
    """The servers, the fleet and its clients. Methods raise TimeoutError."""

    def __init__(self, stage: Stage, folder: Path, programs: Path, rate: float) -> None:
        self.postgres, self.redis = Postgres(folder, programs), Redis(folder)
        self.clusters: tuple[Cluster, ...] = (self.postgres, self.redis)
        self.journal = Journal()
        self._stage, self._rate = stage, rate
        self._say = Progress().say

    def start(self) -> None:
        """Return when the fleet is at work, and clients post."""
        for cluster in self.clusters:
            for node in cluster.nodes:
                self._stage.exits.callback(node.end)
                node.start()
        for cluster in self.clusters:
            self._wait_until_whole(cluster)
        self._say("the servers are there")
        url = self.postgres.url
        with database.connect(url.replace(f"/{DATABASE_NAME}?", "/postgres?"), "drill") as session:
            session.execute(f"CREATE DATABASE {DATABASE_NAME}")
        migrations.upgrade(url)
        with closing(database.connect(url, "drill")) as session:
            session.execute(TABLE)
        self._stage.start({"DATABASE_URL": url, "REDIS_URL": self.redis.url, "API_WORKERS": "1"})
        self.crowd = Crowd(0, self._stage.balancer.port, self._rate, self.journal)
        # A replica shows what it has applied, so the next primary has seen the totals all along.
        self._onlookers = {
            node.name: Pauses(lambda node=node: self.postgres.url_of(node))  # type: ignore[misc]
            for node in self.postgres.nodes
        }
        for onlooker in self._onlookers.values():
            onlooker.start()
        self.crowd.start()
        self._say("the fleet is at work")

    def play(self, cluster: Cluster, name: str) -> Seen:
        """Have one fault strike the primary, undo it, and wait until all is as before."""
        primary = self._wait_until_whole(cluster)
        totals = self._onlookers[self._primary(self.postgres).name]
        time.sleep(CALM)
        self._say(f"{cluster.name}: {primary.name} {name}")
        began = time.monotonic()
        FAULTS[name](cluster, primary)
        leader, elected, went_on = None, None, False
        with suppress(TimeoutError):
            leader = until(lambda: self._elected(cluster, primary, name), "", LIMIT)
            elected = time.monotonic() - began
            self._say(f"{leader.name} leads, after {elected:.1f} s")
            if cluster is self.postgres:
                totals = self._onlookers[leader.name]
            went_on = until(lambda: self._goes_on(totals, began + elected), "", LIMIT)
        primary.recover()
        self._wait_until_whole(cluster)
        self._say("the old primary has returned")
        time.sleep(CALM)
        ended = time.monotonic()
        return Seen(
            f"{cluster.name}: {name}",
            elected,
            leader is primary,
            longest(self._answered(), began, ended),
            max(totals.longest(began, ended).values(), default=ended - began),
            went_on,
        )

    def books(self) -> Evidence:
        """Settle, end the fleet, and return what all of them say."""
        self.crowd.end()
        self._say("waiting until everything is counted and delivered")
        with suppress(TimeoutError):  # what is left to do is among the findings
            until(self._is_settled, "", SETTLE, poll=0.5)
        settled_at = time.monotonic()
        found = [*self._stage.end(), *self._stage.said(), *self.journal.troubles]
        for onlooker in self._onlookers.values():
            onlooker.end()
            found += [onlooker.error] if onlooker.error else []
        with closing(self._stage.connect()) as postgres, self._log() as log:
            found += [*broken(postgres, WHEN_SETTLED), *left_over(postgres, log, STREAM)]
            final = read_final_state(postgres)
        exits = [end for service in self._stage.services.values() for end in service.exits]
        came = self._stage.receiver.deliveries
        asks = self.journal.asks
        return Evidence(asks, final, exits, found, deliveries=came, settled_at=settled_at)

    def _is_settled(self) -> bool:
        with closing(self._stage.connect()) as postgres, self._log() as log:
            return is_settled(postgres, log)

    def _log(self) -> Client:
        return client(self._primary(self.redis))

    def _elected(self, cluster: Cluster, primary: Node, name: str) -> Node | None:
        """Another node that leads, or the same after it was killed."""
        nodes = [node for node in cluster.nodes if node is not primary or name == "killed"]
        return next((node for node in nodes if cluster.leads(node)), None)

    def _primary(self, cluster: Cluster) -> Node:
        late = f"{cluster.name} has no primary"
        return until(lambda: next(filter(cluster.leads, cluster.nodes), None), late, WHOLE)

    def _wait_until_whole(self, cluster: Cluster) -> Node:
        """Return the primary when the others follow it."""

        def whole() -> Node | None:
            primary = self._primary(cluster)
            return primary if cluster.is_whole(primary) else None

        return until(whole, f"{cluster.name} is not whole after {WHOLE:.0f} s", WHOLE, poll=0.5)

    def _goes_on(self, totals: Pauses, since: float) -> bool:
        """Whether a ride was answered since then, and each total has moved."""
        moves = totals.moves.values()
        return self._answered()[-1] > since and all(each[-1] > since for each in moves)

    def _answered(self) -> list[float]:
        return sorted(answer.came for ask in self.journal.asks for answer in ask.answers)
