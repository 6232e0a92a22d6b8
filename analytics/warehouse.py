"""The warehouse: the rides that Spark has already read, as a Delta table, partitioned by day.

    rides/day=2026-11-21/*.parquet   the rides; any engine that reads Delta tables reads them
    rides/_delta_log/                which of these files count, and which ledger is theirs
    rides/_ledgers/*.json            what the rides add up to, block by block

Spark's tasks write a run's files to a hidden folder. The driver moves them to their places, and
names them in one transaction of the table, which carries the run's number: no run counts twice.
Nobody reads what a crash leaves, and a later run removes it.

The driver and all executors must have the same folder under the same path. Only one process at a
time writes to it: the job holds a lock.
"""

import fcntl
import re
import shutil
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO
from uuid import uuid4

from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction

from analytics.ledger import Broken, Ledger, Owner
from analytics.parquet import File
from analytics.table import CommittedRun, Table
from unified_log.errors import Unavailable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UNTIDY = (Broken, Unavailable, DeltaError, OSError)
LONGEST_CHECK = 7 * 24 * 3600  # seconds
COLUMNS = "id BIGINT, created_at TIMESTAMP, distance DECIMAL(12,3), day DATE"


class Warehouse:
    """The warehouse in `folder`. Its methods raise Unavailable when that can't be used.

    A run that is only `checking` holds no lock, so it hides its files elsewhere.
    """

    def __init__(self, folder: Path, retention_days: int = 30, *, checking: bool = False) -> None:
        self.folder = folder
        self.table = Table(folder / "rides", retention_days)
        self._hidden = folder / (".checks" if checking else ".staging")
        # A name of its own: the Spark of a killed job may go on writing for some seconds.
        self.staged = self._hidden / uuid4().hex
        self._lock: TextIO | None = None

    def make_ready(self) -> None:
        """Create the folder, and remove what a run that died left behind.

        Locks the folder until it is closed: the lock in Postgres does not keep out a job on another
        database.
        """
        try:
            self.table.folder.mkdir(parents=True, exist_ok=True)
            self._lock = (self.folder / ".lock").open("a")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.forget_hidden()
            self._hidden.mkdir(exist_ok=True)
            for check in self.folder.glob(".checks/*"):  # of a process that died
                if check.stat().st_mtime < time.time() - LONGEST_CHECK:
                    shutil.rmtree(check, ignore_errors=True)
        except BlockingIOError:
            raise Unavailable(f"another run is writing to the warehouse {self.folder}") from None
        except OSError as error:
            raise self._not_writable(error) from None

    def close(self) -> None:
        """Unlock the folder."""
        if self._lock:
            self._lock.close()

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

    def newest(self) -> CommittedRun | None:
        """What its newest run wrote, even if the table can't be read; None before the first."""
        return next(self.table.committed_runs(), None)

    def owners(self) -> list[Owner]:
        """Whose rides these are, the newest last."""
        newest = self.newest()
        return newest.owners if newest else []

    def committed_run(self) -> CommittedRun | None:
        """What the run wrote that left the table as it is; None before the first. Raises Broken."""
        if not (run := self.table.run):
            return None
        newest = self.newest()
        if newest is None or newest.run != run:
            raise Broken(f"its log does not say what run {run} wrote")
        return newest

    def files_of(self, ranges: Collection[tuple[int, int]]) -> list[File]:
        """The files that may have rides with `after < id <= upto`. Raises Broken."""
        return [
            file
            for file in self.table.files()
            if any(after < file.last and file.first <= upto for after, upto in ranges)
        ]

    def read(self, spark: "SparkSession", files: Collection[File]) -> "DataFrame":
        """All rides in these files; Spark looks at no other. Raises Broken."""
        return _read(spark, self.table.folder, [self.table.require(file) for file in files])

    def read_staged(self, spark: "SparkSession", files: Collection[File]) -> "DataFrame":
        """All rides in these files of the new run."""
        return _read(spark, self.staged, [self.staged / file.path for file in files])

    def make_way(self) -> None:
        """Move what is there instead of a readable table aside. Raises OSError."""
        with suppress(Broken):
            if self.table.delta is not None or not self.table.is_away():
                return
        if self.table.folder.is_dir():
            self._hidden.mkdir(exist_ok=True)
            self.table.folder.rename(self._hidden / f"rides-{self.staged.name}")
        self.table.folder.mkdir()

    def place(self, files: Collection[File]) -> list[AddAction]:
        """Move what Spark's tasks wrote to its place; it counts once published. Raises OSError."""
        return [self.table.place(self.staged, file) for file in files]

    def note(self, after: int, ledger: Ledger, owner: Owner) -> CommittedRun:
        """Write the ledger of the next run's commit to its file, and return what that is to say.

        Raises OSError.
        """
        ledger = ledger.after_run(self.table.run + 1, owner)
        digest = self.table.write_ledger(ledger)
        return CommittedRun(after, ledger.run, ledger.position, digest, ledger.owners)

    def publish(
        self, files: list[AddAction], committed: CommittedRun, replaced: Sequence[File] = ()
    ) -> None:
        """Make the placed files count, in place of those in `replaced`.

        Where the run begins at 0, they replace all files that were there. Raises OSError, too.
        """
        mode: Literal["append", "overwrite"] = "append" if committed.after else "overwrite"
        self.table.commit(files, [*replaced], mode, committed)


def literal(path: str) -> str:
    """As Spark takes it: [, * and the like are escaped, so that nothing in it is a pattern."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def _read(spark: "SparkSession", base: Path, paths: list[Path]) -> "DataFrame":
    """Read Parquet files."""
    if not paths:
        return spark.createDataFrame([], COLUMNS)
    reader = spark.read.schema(COLUMNS).option("basePath", f"file://{base}")
    return reader.parquet(*(f"file://{literal(str(path))}" for path in paths))
