"""Worlds that can be recorded, as chaos records a run."""

from collections.abc import Iterator
from contextlib import contextmanager

from lab.chaos.observer import LogReader, Told
from lab.chaos.trace.recorder import Recorder
from lab.chaos.trace.recording import Recording, Step, read
from tests.support.world import World

# A database with a slot can't be dropped.
FORGET = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"


class Tape:
    """The recording of a world; `steps` once it has ended."""

    def __init__(self, world: World) -> None:
        self._file = world.folder / "recording"
        self.recording = Recording(self._file)
        self.recorder = Recorder(lambda: world.postgres_url, self.recording)
        self.reader = LogReader(lambda: world.redis.url, world.stream, self._tell)
        self.told: list[Told] = []

    def _tell(self, told: Told) -> None:
        self.told.append(told)
        self.recording.write(told)

    @property
    def steps(self) -> list[Step]:
        return [*read(self._file)]


@contextmanager
def recording(world: World) -> Iterator[Tape]:
    """Record commits and the log during a block."""
    tape = Tape(world)
    tape.recorder.start()
    tape.reader.start()
    yield tape
    tape.recorder.end()
    tape.reader.end()
    tape.recording.close()
    world.connection.execute(FORGET)
