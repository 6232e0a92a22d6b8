"""A world whose commits and log are recorded, as chaos records a fleet's, and then judged."""

import time
from collections.abc import Callable

from lab.chaos.fleet import LONGEST_LOG
from lab.chaos.observer import LogReader, Told
from lab.chaos.trace.judge import Verdict, judge
from lab.chaos.trace.recorder import Recorder
from lab.chaos.trace.recording import Recording, Struck, read
from tests.support.disasters import flush
from tests.support.world import Consumer, World, catch_up, drain, eventually
from unified_log.streamer.drain import Streamer

# A database with a slot can't be dropped.
FORGET = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"


class Recorded:
    """A world of which a recorder and an onlooker tell the judge."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.streamer: Streamer
        self.consumer: Consumer
        self.file = world.folder / "recording"
        self.recording = Recording(self.file)
        self.seen: list[Told] = []
        self.onlookers = (
            Recorder(lambda: world.postgres_url, self.recording),
            LogReader(lambda: world.redis.url, world.stream, self.note),
        )

    def note(self, entry: Told) -> None:
        self.seen.append(entry)
        self.recording.write(entry)

    def count(self) -> None:
        """Send what is staged, and count it."""
        drain(self.streamer)
        catch_up(self.consumer)

    def lose_the_log(self, *, long_ago: bool = False) -> None:
        """Once the onlooker has seen all of it; `long_ago`, and it sees all that follows."""
        eventually(lambda: len(self.seen) == len(self.world.records()), "an onlooker")
        flush(self.world)
        self.recording.write(Struck("redis-flush", 0, 0 if long_ago else time.monotonic()))

    def judged(self, scenario: "Scenario") -> Verdict:
        for onlooker in self.onlookers:
            onlooker.start()
        self.streamer, self.consumer = self.world.streamer(), self.world.consumer(batch_size=2)
        scenario(self)
        for onlooker in self.onlookers:
            onlooker.end()
        self.recording.close()
        self.world.connection.execute(FORGET)
        return judge(lambda: read(self.file), LONGEST_LOG)


Scenario = Callable[[Recorded], None]


def two_batches(recorded: Recorded) -> None:
    for distance in (1, 2):
        recorded.world.take(distance)
        recorded.count()
