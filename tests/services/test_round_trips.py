"""How often each process asks the servers: as docs/performance.md says, on any machine."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import NamedTuple, cast

import pytest

from consumers.receipts.worker import IDLE_ROUND as WORKERS_IDLE_ROUND
from demo.embedded.servers import Redis
from rocket_rides.settings import PROJECT
from tests.support.api import Api
from tests.support.clock import Clock
from tests.support.counting import Counter, commands, counting, statements
from tests.support.looks import looking, patient
from tests.support.receipts import staff
from tests.support.receiver import Receiver
from tests.support.rollup import hurry, lead, work
from tests.support.world import World, catch_up, drain
from unified_log import session_settings
from unified_log.readers.running import IDLE_ROUND
from unified_log.streamer import checks
from unified_log.streamer.doorbell import Doorbell
from unified_log.streamer.drain import Streamer
from unified_log.streamer.leading import IDLE_POLL
from unified_log.streamer.trimming import Caps, Trimmer
from unified_log.streamer.upkeep import LOOK_EVERY, UPKEEP_EVERY, Alarms
from watch.watching import UNSEEN

PAGE = (PROJECT / "docs/performance.md").read_text()
A_DAY = 86_400.0
A_MINUTE = 60.0


class Asked(NamedTuple):
    """Of Postgres and of Redis."""

    statements: int
    postgres_trips: int
    commands: int
    redis_trips: int

    def times(self, number: float) -> "Asked":
        return Asked(*(round(each * number) for each in self))

    def and_(self, other: "Asked") -> "Asked":
        return Asked(*(one + another for one, another in zip(self, other, strict=True)))


ROW = re.compile(r"^\| ([^|]+?) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|", re.MULTILINE)
TABLE = {what: Asked(*map(int, counts)) for what, *counts in ROW.findall(PAGE)}


class Counting(NamedTuple):
    """A world, and the same one led through counters."""

    world: World
    through: World
    postgres: Counter
    redis: Counter

    def asked(self, do: Callable[[], object]) -> Asked:
        """What is asked of the servers meanwhile."""
        before = self.so_far
        do()
        return Asked(*(now - then for now, then in zip(self.so_far, before, strict=True)))

    @property
    def so_far(self) -> Asked:
        servers = self.postgres, self.redis
        return Asked(*(count for each in servers for count in (each.asked, each.round_trips)))

    def of_a_minute(
        self, look: Callable[[], object], clock: Clock, idle_round: float = IDLE_ROUND
    ) -> Asked:
        """Of an idle reader, each of whose rounds waits for so many seconds."""

        def minute() -> None:
            for _ in range(round(A_MINUTE / idle_round)):
                look()
                clock.now += idle_round

        minute()  # so that whatever is due once a minute has been prepared
        minute()
        return self.asked(minute)


@pytest.fixture
def counted(world: World) -> Iterator[Counting]:
    postgres = counting(world.postgres.socket, statements)
    with postgres as (at, counter), counting(world.redis.socket, commands) as (log_at, log_counter):
        url = f"postgresql://postgres@/{world.stream}?host={at}&port=5432"
        server = cast(Redis, SimpleNamespace(url=f"unix://{log_at}/redis.sock"))
        through = World(world.postgres, server, url, world.stream, world.folder)
        with through.exits:
            yield Counting(world, through, counter, log_counter)


def test_the_api(counted: Counting) -> None:
    api = Api(
        counted.through,
        API_CONNECTIONS="1",  # another would have to prepare its statements first
        LOG_LEVEL="DEBUG",
    )
    api.service.says("pruned 0 idempotency keys")  # at the start, and once a day
    for name in ("k", "another", "third"):  # by then, everything is prepared
        keyed = partial(api.post, **{"Idempotency-Key": name})
        found = {
            "a POST": counted.asked(api.post),
            "a POST under a key": counted.asked(keyed),
            "the same POST again": counted.asked(keyed),
            "`GET /consumers`": counted.asked(lambda: api.client.get("/consumers")),
            "`GET /log`": counted.asked(lambda: api.client.get("/log")),
        }
    api.client.close()
    assert found == {what: TABLE.get(what) for what in found}


def test_the_streamer(counted: Counting) -> None:
    world, log = counted.world, counted.through.log()
    connection = counted.through.connect(**session_settings.INDEX_SCANS)
    streamer, doorbell = Streamer(connection, log), Doorbell(connection)
    trimmer, alarms = Trimmer(connection, log, Caps(1_000_000, A_DAY)), Alarms()

    def upkeep() -> None:
        trimmer.trim()
        checks.require_rising_sequence(connection)

    def look() -> None:
        alarms.look(connection, log, streamer.last_sent, streamer.types)

    for _ in range(3):
        world.take(*range(1, 11))
        upkeep()
        look()
        found = {
            "a batch of the streamer": counted.asked(streamer.run_once),
        }
        idle = counted.asked(streamer.run_once).and_(counted.asked(doorbell.arm))
        regular = counted.asked(upkeep).times(A_MINUTE / UPKEEP_EVERY)
        regular = regular.and_(counted.asked(look).times(A_MINUTE / LOOK_EVERY))
    found["an idle minute of the streamer"] = idle.times(A_MINUTE / IDLE_POLL).and_(regular)
    assert found == {what: TABLE.get(what) for what in found}


def test_the_readers(
    counted: Counting, receiver: Receiver, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("inbox", "delivery", "queue", "upkeep"):
        monkeypatch.setattr(f"consumers.receipts.{module}.time", clock)
    world, streamer = counted.world, counted.world.streamer()
    consumer, leading = counted.through.consumer(), lead(counted.through)
    with staff(counted.through, receiver) as workers:
        worker = workers.worker()

        def look() -> None:
            worker.read()
            worker.deliver(wait=0)

        for _ in range(3):
            world.take(*range(1, 11))
            drain(streamer)
            found = {"a batch of a total": counted.asked(consumer.run_once)}
            catch_up(consumer)
            hurry(leading)
            worker.until(lambda: not undecided(world))
        idle = partial(counted.of_a_minute, clock=clock)
        found["an idle minute of a total"] = idle(lambda: consumer.run_once(wait=0))
        found["an idle minute of the rollup"] = idle(lambda: work(leading))
        minute = idle(look, idle_round=WORKERS_IDLE_ROUND)
        found["an idle minute of a worker of the receipts"] = minute
    assert found == {what: TABLE.get(what) for what in found}


def undecided(world: World) -> int:
    return world.value(
        "SELECT count(*) FROM rides LEFT JOIN receipts ON ride_id = id WHERE outcome IS NULL"
    )


def test_the_page(counted: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    patient(monkeypatch)
    counted.world.take(1)
    drain(counted.world.streamer())
    with looking(counted.through) as gatherer:
        gatherer.gather()
        gatherer.gather()
        idle = counted.asked(gatherer.gather).times(A_MINUTE / UNSEEN)
        assert idle == TABLE.get("an idle minute of the page")
