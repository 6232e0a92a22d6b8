"""The steps of a drill: an unchanged roll, the upgrade, the way back, and where that ends."""

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import redis

from lab.balancer import AWAY
from lab.books import closed
from lab.chaos.clients import Crowd
from lab.chaos.evidence import Evidence
from lab.chaos.hosts import PostgresHost, RedisHost, keep
from lab.pauses import Pauses
from lab.processes import run
from lab.progress import progress
from lab.stage import APIS, ORDER, PATIENCE, Stage
from lab.until import until
from lab.upgrade.releases import Releases
from lab.upgrade.verdict import Step

WARM_UP = 5.0  # seconds of load before the first step
NOT_SERVED = "install the newer code"
TOO_OLD = ("ratings0", "api1")  # restarted with the last release when that is no longer served
CAN_TELL = (0, 1)  # exit statuses of watch.status, which finds dead letters here


class Drill:
    """A fleet of the last release under load. Methods raise ServerFailed or TimeoutError."""

    def __init__(self, stage: Stage, releases: Releases, seed: int, rate: float) -> None:
        self._say = progress()
        self.steps: list[Step] = []
        self._stage, self._releases = stage, releases
        self._postgres = PostgresHost(stage.folder / "data", stage.folder / "run")
        self._redis = RedisHost(stage.folder / "log", stage.folder / "run")
        self._seed, self._rate = seed, rate

    def run(self, seconds: float) -> Evidence:
        self._start()
        last, following, later, _ = self._releases
        self._roll("unchanged roll", seconds, ORDER, last)
        with self._step("the newer schema", seconds):
            self._migrate(following)
            self._ask_status(last)
        self._all_are_at_work()
        self._roll("roll to the newer code", seconds, ORDER, following)
        self._roll("the way back", seconds, ORDER[::-1], last)
        self._roll("forward again", seconds, ORDER, following)
        with self._step("the schema that takes away", seconds):
            self._migrate(later)
        self._all_are_at_work()
        with self._step("the last release is told so", seconds, len(TOO_OLD)):
            for name in TOO_OLD:
                self._is_not_served(name)
        return self._books()

    def _start(self) -> None:
        stage = self._stage
        for server in (self._postgres, self._redis):
            stage.exits.callback(server.end)
        keep(self._postgres, self._redis)
        servers = {"DATABASE_URL": self._postgres.url, "REDIS_URL": self._redis.url}
        stage.settings.update(servers)
        self._migrate(self._releases.last)
        stage.start(self._releases.last)
        self._pauses = Pauses(lambda: self._postgres.url)
        self._crowd = Crowd(self._seed, stage.balancer.port, self._rate, self._stage.journal, AWAY)
        self._pauses.start()
        self._crowd.start()
        time.sleep(WARM_UP)

    def _roll(self, step: str, seconds: float, names: Sequence[str], tree: Path) -> None:
        with self._step(step, seconds, len(names)):
            for name in names:
                self._stage.restart(name, tree)

    @contextmanager
    def _step(self, name: str, seconds: float, restarts: int = 0) -> Iterator[None]:
        """Note what the block costs, and the rest of the step's time."""
        self._say(name)
        step, began, refused = Step(name, restarts), time.monotonic(), len(self._crowd.refused)
        self.steps.append(step)
        try:
            yield
            time.sleep(max(0.0, began + seconds - time.monotonic()))
        finally:
            ended = time.monotonic()
            step.seconds = ended - began
            step.refused = self._crowd.refused[refused:]
            step.pauses = self._pauses.longest(began, ended)
            answers = [answer.came for ask in self._stage.journal.asks for answer in ask.answers]
            step.rides = sum(began < came < ended for came in answers)

    def _migrate(self, tree: Path) -> None:
        migrated = run(["migrations"], self._stage.settings, PATIENCE, tree)
        if migrated.returncode != 0:
            raise TimeoutError(f"not migrated: {migrated.stdout.strip()}")

    def _all_are_at_work(self) -> None:
        """Whoever waits for newer code never is."""
        for name in ORDER:
            self._stage.wait_for(name)

    def _ask_status(self, tree: Path) -> None:
        """The last release's tools work on the newer schema, too."""
        told = run(["watch.status"], self._stage.settings, PATIENCE, tree)
        if told.returncode not in CAN_TELL:
            self._stage.found.append(f"make status of the last release: {told.stdout.strip()}")

    def _is_not_served(self, name: str) -> None:
        """A process of the last release says so in a line, and waits; the newer one comes back."""
        service = self._stage.services[name]
        tree, service.tree = service.tree, self._releases.last
        if name in APIS:
            self._stage.balancer.take_out(name)
        service.end_by(signal.SIGTERM)
        late = f"{name} of the last release does not say that it is no longer served"
        until(service.says(NOT_SERVED), late)
        if self._stage.is_at_work(name):
            self._stage.found.append(
                f"{name} of the last release is at work, and is no longer served"
            )
        service.tree = tree
        service.end_by(signal.SIGTERM)
        self._stage.wait_for(name)
        if name in APIS:
            self._stage.balancer.put_back(name)

    def _books(self) -> Evidence:
        self._say("waiting until everything is counted and delivered")
        self._crowd.end()
        client = partial(redis.Redis.from_url, self._redis.url)
        return closed(self._stage, client, [self._pauses])
