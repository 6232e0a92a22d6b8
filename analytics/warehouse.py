"""The warehouse: the rides that Spark has already read, as a Delta table, partitioned by day.

    rides/day=2026-11-21/*.parquet   the rides; any engine that reads Delta tables reads them
    rides/_delta_log/                which of these files count, and what the rides add up to

Spark's tasks write a run's files to a hidden folder. The driver moves them to their places, and
names them in one transaction of the table, which carries the run's number: no run counts twice.
Nobody reads what a crash leaves, and a later run removes it.

The driver and all executors must have the same folder under the same path. Only one process at a
time writes to it: the job holds a lock.
"""

import fcntl
import re
import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction

from analytics.ledger import Block, Broken, Ledger, Owner
from analytics.parquet import File
from analytics.table import Night, Table
from rocket_rides.errors import Unavailable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UNTIDY = (Broken, Unavailable, DeltaError, OSError)
COLUMNS = "id BIGINT, created_at TIMESTAMP, distance DECIMAL(12,3), day DATE"


class Warehouse:
    """The warehouse in `folder`. Its methods raise Unavailable when that can't be used."""

    def __init__(self, folder: Path, retention_days: int = 30) -> None:
        self.folder = folder
        self.table = Table(folder / "rides", retention_days)
        self._hidden = folder / ".staging"
        # A name of its own: the Spark of a killed job may go on writing for some seconds.
        self.staged = self._hidden / uuid4().hex

    def make_ready(self) -> None:
        """Create the folder, and remove what a run that died left behind.

        Locks the folder for as long as this object lives: the lock in Postgres does not keep out a
        job on another database.
        """
        try:
            self.table.folder.mkdir(parents=True, exist_ok=True)
            self._lock = (self.folder / ".lock").open("a")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.forget_hidden()
            self._hidden.mkdir(exist_ok=True)
        except BlockingIOError:
            raise Unavailable(f"another run is writing to the warehouse {self.folder}") from None
        except OSError as error:
            raise self._not_writable(error) from None

    def forget_hidden(self) -> None:
        """Remove what runs have left behind. Only for the holder of the lock."""
        shutil.rmtree(self._hidden, ignore_errors=True)

    def tidy(self) -> None:
        """Remove what nobody has needed for long, after a run has published. Raises UNTIDY."""
        self.table.forget()
        self.forget_hidden()

    def forget_staged(self) -> None:
        """Remove what this run has written and not published, and folders that only it needed."""
        shutil.rmtree(self.staged, ignore_errors=True)
        with suppress(OSError):
            self._hidden.rmdir()
            self.folder.rmdir()

    def make_room(self) -> Path:
        """The folder for the files of a new run, which nobody reads before they are published."""
        try:
            self.staged.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._not_writable(error) from None
        return self.staged

    def _not_writable(self, error: OSError) -> Unavailable:
        return Unavailable(f"the warehouse {self.folder} can't be written to: {error.strerror}")

    def owners(self) -> list[Owner]:
        """Whose rides these are, the newest last, even if the table can't be read."""
        newest = next(self.table.nights(), None)
        return newest.ledger.owners if newest else []

    def ledger(self) -> Ledger:
        """What the table holds, as its newest run has left it. Raises Broken."""
        if not (run := self.table.run):
            return Ledger()
        newest = next(self.table.nights(), None)
        if newest is None or newest.ledger.run != run:
            raise Broken(f"its log does not say what run {run} wrote")
        if newest.ledger.total.rides != sum(file.rides for file in self.table.files()):
            raise Broken(f"its rides are not those that run {run} left")
        return newest.ledger

    def files_of(self, blocks: Sequence[Block]) -> list[File]:
        """The files that may have rides of these blocks. Raises Broken."""
        return [
            file
            for file in self.table.files()
            if any(block.after < file.last and file.first <= block.upto for block in blocks)
        ]

    def read(self, spark: "SparkSession", files: Collection[File]) -> "DataFrame":
        """All rides in these files; Spark looks at no other. Raises Broken."""
        return _read(spark, self.table.folder, [self.table.require(file) for file in files])

    def read_staged(self, spark: "SparkSession", files: Collection[File]) -> "DataFrame":
        """All rides in these files of the new run."""
        return _read(spark, self.staged, [self.staged / file.path for file in files])

    def place(self, files: Collection[File], *, rebuilding: bool) -> list[AddAction]:
        """Move what Spark's tasks wrote to its place; it counts once published. Raises OSError.

        When `rebuilding`, what is there instead of a readable table is moved out of the way.
        """
        with suppress(Broken):
            rebuilding = rebuilding and self.table.delta is None and self.table.is_away()
        if rebuilding:
            self.table.folder.rename(self._hidden / "rides")
            self.table.folder.mkdir()
        return [self.table.place(self.staged, file) for file in files]

    def publish(self, files: list[AddAction], after: int, ledger: Ledger, owner: Owner) -> None:
        """Make the placed files count: rides past `after`, which `ledger` includes.

        Where `after` is 0, they replace all files that were there. Raises OSError, too.
        """
        night = Night(after, ledger.after_run(self.table.run + 1, owner))
        self.table.commit(files, "append" if after else "overwrite", night)


def within(blocks: Sequence[Block]) -> str:
    """The condition that a ride is in one of these blocks."""
    return " OR ".join(f"(id > {block.after} AND id <= {block.upto})" for block in blocks)


def literal(path: str) -> str:
    """As Spark takes it: [, * and the like are escaped, so that nothing in it is a pattern."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def _read(spark: "SparkSession", base: Path, paths: list[Path]) -> "DataFrame":
    """Read Parquet files."""
    if not paths:
        return spark.createDataFrame([], COLUMNS)
    reader = spark.read.schema(COLUMNS).option("basePath", f"file://{base}")
    return reader.parquet(*(f"file://{literal(str(path))}" for path in paths))
