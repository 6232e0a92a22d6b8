"""docs/writing-a-consumer.md is true: a reader that does as it says, with its SQL, counts right."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from lab.chaos.backup import Backup
from rocket_rides.settings import PROJECT
from tests.support.clusters import restore
from tests.support.disasters import stranded
from tests.support.entries import RIDE, named
from tests.support.world import World, drain
from unified_log.log import Entry, as_numbers
from unified_log.repair import repair

PAGE = (PROJECT / "docs/writing-a-consumer.md").read_text()
CREATE_ROLE, REGISTER, BOUNDS, HEAL, MOVE = re.findall(r"^```sql\n(.*?)^```", PAGE, re.M | re.S)
POSITION = """
    SELECT last_redis_id, position FROM checkpoints WHERE kind = 'outside' AND name = 'billing'
"""

Standing = tuple[str, int]


class Reader:
    """What the page describes. It keeps its rides outside of Postgres: in `rides`."""

    def __init__(self, world: World, count: int = 2) -> None:
        self.world, self.log, self.count = world, world.log(), count
        self.rides: dict[int, Decimal] = {}
        self.known_sent = 0
        self.stored = (0, "")  # with the rides: the last ride, and the newest term
        self.query(REGISTER)

    def query(self, statement: str, **values: object) -> list[Any]:
        with self.world.connection.transaction():
            self.world.connection.execute("SET LOCAL ROLE billing")
            cursor = self.world.connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else [None] * cursor.rowcount

    def catch_up(self) -> dict[int, Decimal]:
        """Until three rounds have found nothing: a missing tail takes one to notice."""
        standings = [self.round() for _ in range(3)]
        while standings[-3:] != standings[-1:] * 3:
            standings.append(self.round())
        return self.rides

    def round(self) -> Standing:
        [(redis_id, ride_id)] = self.query(POSITION)
        entries = self.log.read(redis_id, self.count)
        terms = self.query(BOUNDS)
        last_sent = terms[-1][0]
        if not any(self.shares(*row) for row in terms):
            self.rides.clear()
            to = ("0-0", 0)
        elif not entries and as_numbers(self.log.last_id()) < as_numbers(redis_id):
            to = ("0-0", ride_id)
        else:
            to = self.take(entries, redis_id, ride_id, terms)
            tail = min(self.known_sent, last_sent)
            if len(entries) < self.count and to[1] < tail:
                self.heal(to[1], tail)
                to = (to[0], tail)
        self.known_sent, self.stored = last_sent, (to[1], terms[-1][1])
        values = {"from_redis_id": redis_id, "from_position": ride_id}
        assert len(self.query(MOVE, redis_id=to[0], position=to[1], **values)) == 1
        return to

    def take(self, entries: list[Entry], redis_id: str, ride_id: int, terms: list[Any]) -> Standing:
        ranges = {term.encode(): range(after + 1, upto + 1) for _, term, _, after, upto in terms}
        for entry in entries:
            fields = dict(zip(entry.fields[::2], entry.fields[1::2], strict=True))
            try:
                number, prev = int(fields[b"id"]), int(fields[b"prev"])
                type_, data = fields[b"type"].decode(), fields[b"data"]
            except (KeyError, ValueError):
                redis_id = entry.redis_id
                continue
            ours = number in ranges.get(fields.get(b"term", b""), ())
            if ours and number > terms[-1][0]:
                break
            redis_id = entry.redis_id
            if ours and number > ride_id:
                self.heal(ride_id, prev)
                assert number not in self.rides
                self.count_one(number, type_, data)
                ride_id = number
        return redis_id, ride_id

    def heal(self, after: int, upto: int) -> None:
        for record in self.query(HEAL, after=after, upto=upto):
            self.count_one(*record)

    def count_one(self, number: int, type_: str, data: str | bytes) -> None:
        if type_ == RIDE:
            ride = json.loads(data, parse_float=Decimal)
            self.rides[number] = Decimal(ride["distance"])

    def shares(self, last_sent: int, term: str, replaced: list[str], after: int, upto: int) -> bool:
        ride_id, known = self.stored
        return (
            ride_id <= after
            if known in replaced
            else known == term and ride_id <= min(upto, last_sent)
        )


@contextmanager
def billing(world: World) -> Iterator[Reader]:
    """A reader with the page's role, which is its cluster's and not its database's."""
    world.connection.execute(CREATE_ROLE, prepare=False)
    try:
        yield Reader(world)
    finally:
        world.connection.execute("DROP OWNED BY billing; DROP ROLE billing", prepare=False)


def truth(world: World) -> dict[int, Decimal]:
    return dict(world.connection.execute("SELECT id, distance FROM rides").fetchall())


def spoil(world: World, last_id: str = "*") -> None:
    """What is nonsense, a stranger's, without a term, or sent and never committed."""
    data = '{"id": 2, "distance": 9.5}'
    spoilt: list[dict[Any, Any]] = [
        {"data": "nonsense", "prev": "1"},
        {"id": 2, "type": RIDE, "data": data, "prev": "1"},
        named(2, data, 1, "0123456789abcdef"),
    ]
    for fields, entry_id in zip(spoilt, ("*", "*", last_id), strict=True):
        world.log().redis.xadd(world.stream, fields, id=entry_id)


def test_it_counts_every_ride_once_whatever_the_log_does(world: World) -> None:
    with billing(world) as reader:
        spoil(world)
        world.take(1, 2, 3)
        streamer = world.streamer(batch_size=2)
        streamer.run_once(double_send=True)
        drain(streamer)
        spoil(world)
        assert reader.catch_up() == truth(world)
        world.send(4, 5, 6)
        world.log().trim_to(1, exactly=True)
        assert reader.catch_up() == truth(world)
        world.send(7, 8)
        world.log().redis.delete(world.stream)
        assert reader.catch_up() == truth(world)  # without another ride
        spoil(world, "9999999999999-0")
        reader.catch_up()
        world.log().redis.delete(world.stream)
        world.send(9)
        assert reader.catch_up() == truth(world)
        assert reader.query(POSITION)[0][0] == world.log().last_id()


def test_it_starts_again_when_rides_below_its_position_were_repaired(world: World) -> None:
    with billing(world) as reader:
        stranded(world)
        late = world.start + 2
        assert late not in reader.catch_up()
        assert repair(world.connect()) == ([late], [])
        assert reader.catch_up() == truth(world)
        world.send(4)
        assert reader.catch_up() == truth(world)


def test_it_starts_again_when_a_restore_has_lost_rides_that_it_counted(own_world: World) -> None:
    """Here its checkpoint is lost too; what it keeps elsewhere has to follow."""
    with billing(own_world) as reader:
        own_world.send(1, 2)
        backup = Backup(own_world.postgres, "first")
        own_world.send(100, 200)
        assert len(reader.catch_up()) == 4
        restore(own_world, backup, recovery_signal=True)
        own_world.send(3)
        assert reader.catch_up() == truth(own_world)
