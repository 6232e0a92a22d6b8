"""A database with rides, consumers that claim to have counted them, and the nightly job."""

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from analytics import runs
from analytics.job import Job
from analytics.reconcile import SESSION
from analytics.result import Result, Tally
from analytics.warehouse import Warehouse
from tests.support.world import World, catch_up
from unified_log.database import one_row

if TYPE_CHECKING:
    from pyspark import SparkContext

MILLIMETRE = Decimal("0.001")
SENT = """
    UPDATE streamer_state SET
        last_sent_id = (SELECT last_value FROM log_position),
        records_sent = (
            SELECT count(*) FROM log_records WHERE id <= (SELECT last_value FROM log_position)
        )
"""


def exact(world: World, upto: int) -> Decimal:
    """The exact sum of the rides up to an id, as Postgres adds it up."""
    query = "SELECT coalesce(sum(distance), 0) FROM rides WHERE id <= %s"
    total: Decimal = one_row(world.connection.execute(query, [upto]))[0]
    return total


def tally(rides: int, distance: Decimal | int) -> Tally:
    return Tally(rides, Decimal(distance))


@dataclass
class Books:
    """One world, with a warehouse of its own; and Spark, for what needs it."""

    world: World
    given: "SparkContext | None" = None
    url: str = ""  # of the warehouse, where it is not in a folder
    place: Path | None = None  # where the server of that URL keeps it

    @property
    def spark(self) -> "SparkContext":
        assert self.given
        return self.given

    @property
    def root(self) -> str:
        return self.url or str(self.on_disk)

    @property
    def on_disk(self) -> Path:
        """The folder in which the warehouse's files are."""
        return self.place or self.world.folder / "warehouse"

    @property
    def rides_on_disk(self) -> Path:
        return self.on_disk / "rides"

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse(self.root)

    def job(
        self,
        shown: Callable[[str], AbstractContextManager[object]] | None = None,
        check: bool = False,
        chance: int = 1,
    ) -> Job:
        """A run, whose choices at random follow from `chance`."""
        warehouse = self.warehouse
        connection = self.world.connect(**SESSION)
        if not check:
            warehouse.make_ready()
        return Job(
            connection,
            self.spark,
            self.world.postgres_url,
            warehouse,
            None if check else runs.begin_run(connection),
            random.Random(chance),
            shown or (lambda _stage: nullcontext()),
        )

    def run(self, *, check: bool = False, full: bool = False, chance: int = 1) -> Result:
        return self.job(check=check, chance=chance).run_once(full=full)

    def add_many(self, count: int, at: str = "now()") -> None:
        """Insert many rides in one go, as already sent; `at` is SQL of their `number`."""
        self.world.connection.execute(
            "INSERT INTO rides (distance, created_at)"
            f" SELECT (1 + number %% 977) / 1000.0, {at} FROM generate_series(1, %s) number",
            [count],
        )
        self.world.connection.execute(SENT)

    def skip_ids(self, count: int) -> None:
        """Draw so many ids that no ride gets, as transactions do that roll back."""
        self.world.connection.execute(
            "SELECT setval('log_position', (SELECT last_value FROM log_position) + %s)", [count]
        )

    def claim(self, name: str, last_ride_id: int, drift: Decimal | int = 0, rides: int = 0) -> None:
        """Insert a consumer that stands at a ride, with a total that is wrong by `drift` metres.

        The number of its rides is wrong by `rides`.
        """
        self.world.connection.execute(
            "INSERT INTO checkpoints (kind, name, position) VALUES ('total', %s, %s)",
            [name, last_ride_id],
        )
        self.world.connection.execute(
            "INSERT INTO consumer_states (name, total_distance, rides)"
            " SELECT %s, %s, %s + count(*) FROM rides WHERE id <= %s",
            [name, exact(self.world, last_ride_id) + drift, rides, last_ride_id],
        )

    def follow(self, name: str = "witness") -> None:
        """Have a consumer stand at the last record, with the exact total."""
        self.world.connection.execute("DELETE FROM checkpoints WHERE name = %s", [name])
        self.claim(name, self.world.value("SELECT last_sent_id FROM streamer_state"))

    def tamper(self, name: str, drift: Decimal) -> None:
        """Change a consumer's total behind its back."""
        self.world.connection.execute(
            "UPDATE consumer_states SET total_distance = total_distance + %s WHERE name = %s",
            [drift, name],
        )

    def caught_up(self, name: str = "consumer0") -> tuple[int, Decimal]:
        """Let the consumer apply its resets and read the whole log; returns its ride and total."""
        return catch_up(self.world.consumer(name))

    def in_warehouse(self) -> tuple[int, int, Decimal]:
        """The number of rides, of distinct rides, and their sum, in all visible files."""
        if (delta := self.warehouse.table.delta) is None:
            return 0, 0, Decimal(0)
        found = delta.to_pyarrow_table(columns=["id", "distance"])
        ids, distances = (column.to_pylist() for column in found.columns)
        return len(ids), len(set(ids)), sum(distances, Decimal(0))

    def in_postgres(self) -> tuple[int, int, Decimal]:
        """The same figures of the rides up to last_sent, in Postgres."""
        return one_row(
            self.world.connection.execute(
                "SELECT count(*), count(DISTINCT id), coalesce(sum(distance), 0) FROM rides"
                " WHERE id <= (SELECT last_sent_id FROM streamer_state)"
            )
        )
