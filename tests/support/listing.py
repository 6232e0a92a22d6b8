"""A handler that heals and recounts by default: it lists the rides that it took."""

from collections.abc import Sequence
from typing import ClassVar

from consumers.rides import TYPE, Ride, ride
from tests.support.world import World
from unified_log.errors import RecordRefused
from unified_log.readers.handler import Handler
from unified_log.readers.reader import Reader
from unified_log.readers.round import Round

# Without a unique key, so that what is counted twice is listed twice.
TABLE = """
    CREATE TABLE listed (
        kind text NOT NULL DEFAULT 'listing', name text NOT NULL, ride_id bigint NOT NULL,
        distance numeric NOT NULL,
        FOREIGN KEY (kind, name) REFERENCES readers (kind, name) ON DELETE CASCADE
    )
"""
LIST = "INSERT INTO listed (name, ride_id, distance) VALUES (%s, %s, %s)"


class Listing(Handler):
    """The rides up to the checkpoint. It remembers how many; refuses those of `REFUSED` metres."""

    KIND = "listing"
    TYPES: ClassVar = {TYPE: ride}
    RECORD = "ride"
    REFUSED: ClassVar[set[int]] = set()
    rides = 0

    def load(self, at: object) -> None:
        found = self.connection.execute("SELECT count(*) FROM listed WHERE name = %s", [self.name])
        [self.rides] = found.fetchone() or (0,)

    def take(self, records: Sequence[Ride]) -> None:
        for record in records:
            if record.distance in self.REFUSED:
                raise RecordRefused(f"{record.distance} m are too many")
            self.connection.execute(LIST, [self.name, record.id, record.distance])
        self.rides += len(records)


def listing(world: World, batch_size: int = 1000, name: str = "listing0") -> Reader[Listing]:
    """A reader of this kind, with its table if there is none."""
    world.connection.execute(TABLE.replace("TABLE", "TABLE IF NOT EXISTS"))
    return Reader(world.log(), Listing(world.connect(), name), batch_size)


def listed(world: World, name: str = "listing0") -> list[int]:
    """The rides that it has taken, in the order of their ids."""
    found = world.connection.execute(
        "SELECT ride_id FROM listed WHERE name = %s ORDER BY ride_id", [name]
    )
    return [ride_id for (ride_id,) in found]


def hurry(reader: Reader[Listing]) -> list[Round]:
    """Run it until two rounds in a row find nothing to do; returns those that did something."""
    rounds: list[Round] = []
    idle = 0
    while idle < 2:
        before = reader.at
        done = reader.run_once()
        did_nothing = done.did_nothing and before == reader.at
        idle = idle + 1 if did_nothing else 0
        if not did_nothing:
            rounds.append(done)
    return rounds
