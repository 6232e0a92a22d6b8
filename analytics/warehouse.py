"""The warehouse: the rides that Spark has already read, as Parquet, run by run.

    rides/run=0000003/_manifest.json         what the run holds, block by block
    rides/run=0000003/day=2026-11-21/*.parquet

A run holds the rides from the end of the last run up to its own frozen id. It becomes visible,
complete and synced to disk, when its folder is renamed. Until then it is in a hidden folder, which
the next run deletes if it finds one. A run that starts at the first ride supersedes all earlier
ones. Its manifest also says which database the rides are from (`analytics.ownership`), and lists
its files.

The driver and all executors must have the same folder under the same path. Only one process at a
time writes to it: the job holds a lock.
"""

import fcntl
import os
import re
import shutil
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from analytics.ledger import Block, Broken, Ledger, Manifest
from rocket_rides.errors import Unavailable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "id BIGINT, created_at TIMESTAMP, distance DECIMAL(12,3), day DATE"
MANIFEST = "_manifest.json"
RUN = re.compile(r"run=(\d+)")


class Warehouse:
    """The runs below `folder`. Its methods raise Unavailable when the folder can't be used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._rides = folder / "rides"
        self._hidden = folder / ".staging"
        # A name of its own: the Spark of a killed job may go on writing for some seconds.
        self._staged = self._hidden / uuid4().hex

    def make_ready(self) -> None:
        """Create the folder, and remove what a run that died left behind.

        Locks the folder for as long as this object lives: the lock in Postgres does not keep out a
        job on another database.
        """
        try:
            self._rides.mkdir(parents=True, exist_ok=True)
            self._lock = (self.folder / ".lock").open("a")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(self._hidden, ignore_errors=True)
            self._hidden.mkdir(exist_ok=True)
        except BlockingIOError:
            raise Unavailable(f"another run is writing to the warehouse {self.folder}") from None
        except OSError as error:
            raise Unavailable(
                f"the warehouse {self.folder} can't be written to: {error.strerror}"
            ) from None

    def manifests(self) -> list[Manifest | Broken]:
        """The manifests since the newest run that starts at the first ride, oldest first.

        In place of one that can't be read stands the reason.
        """
        manifests: list[Manifest | Broken] = []
        for number in self._numbers():
            manifests.insert(0, manifest := self._manifest(number))
            if isinstance(manifest, Manifest) and manifest.after == 0:
                break
        return manifests

    def ledger(self) -> Ledger:
        """What the runs hold. Raises Broken."""
        return ledger_of(self.manifests())

    @property
    def next_run(self) -> int:
        """The number of the next run."""
        return next(iter(self._numbers()), 0) + 1

    def _numbers(self) -> list[int]:
        """The numbers of the visible runs, newest first."""
        try:
            names = os.listdir(self._rides)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise Unavailable(
                f"the warehouse {self.folder} can't be read: {error.strerror}"
            ) from None
        return sorted((int(run[1]) for name in names if (run := RUN.fullmatch(name))), reverse=True)

    def _manifest(self, number: int) -> Manifest | Broken:
        try:
            return msgspec.json.decode((self._run(number) / MANIFEST).read_bytes(), type=Manifest)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            return Broken(f"the manifest of run {number} can't be read: {error}")

    def _run(self, number: int) -> Path:
        return self._rides / f"run={number:07}"

    def write(self, rides: "DataFrame") -> "DataFrame":
        """Write the rides of a new run, still hidden; returns them as read back from the files."""
        rides.write.partitionBy("day").parquet(f"file://{self._staged}")
        return _read(rides.sparkSession, self._staged, [self._staged])

    def read(self, spark: "SparkSession", blocks: Sequence[Block]) -> "DataFrame":
        """All rides in the files of the days that these blocks span, in their runs.

        Spark lists the files of every folder that it is given. So of each run it is given only the
        days that are wanted: a night's cost does not grow with the days of history. Raises Broken.
        """
        folders: dict[Path, None] = {}
        for run in sorted({block.run for block in blocks}):
            days = sorted({name.partition("/")[0] for name in self._require_its_files(run)})
            for block in (block for block in blocks if block.run == run):
                first, last = f"day={block.first_day}", f"day={block.last_day}"
                inside = days[bisect_left(days, first) : bisect_right(days, last)]
                folders |= dict.fromkeys(self._run(run) / day for day in inside)
        return _read(spark, self._rides, [*folders])

    def _require_its_files(self, number: int) -> Iterable[str]:
        """The files of a run. Raises Broken for any that Spark would silently read, or miss."""
        manifest = self._manifest(number)
        if isinstance(manifest, Broken):
            raise manifest
        on_disk = _files(self._run(number))
        for name, size in manifest.files.items():
            if name not in on_disk:
                raise Broken(f"{name} of run {number} is missing")
            if on_disk[name] != size:
                raise Broken(f"{name} of run {number} has {on_disk[name]} bytes, not {size}")
        if strange := sorted(on_disk.keys() - manifest.files):
            raise Broken(f"{strange[0]} of run {number} is not a file of that run")
        return manifest.files

    def publish(self, manifest: Manifest) -> None:
        """Make the written rides visible as the newest run, and drop the runs it supersedes."""
        superseded = self._numbers() if manifest.after == 0 else []
        manifest = msgspec.structs.replace(manifest, files=_files(self._staged))
        (self._staged / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
        for path in [*self._staged.rglob("*"), self._staged]:
            _to_disk(path)
        self._staged.rename(self._run(manifest.run))
        _to_disk(self._rides)
        self._forget(superseded)

    def empty(self) -> None:
        """Drop every run: there are no rides."""
        self._forget(self._numbers())

    def _forget(self, runs: list[int]) -> None:
        """Newest first, one rename each: the runs left at any moment are a valid warehouse."""
        for run in runs:
            self._run(run).rename(self._hidden / self._run(run).name)
        shutil.rmtree(self._hidden, ignore_errors=True)


def ledger_of(manifests: Sequence[Manifest | Broken]) -> Ledger:
    """The ledger of the runs with these manifests. Raises Broken."""
    readable = []
    for manifest in manifests:
        if isinstance(manifest, Broken):
            raise manifest
        readable.append(manifest)
    return Ledger(readable)


def within(blocks: Sequence[Block]) -> str:
    """The condition that a ride is in one of these blocks; Spark opens only their days' files."""
    return " OR ".join(
        f"(id > {block.after} AND id <= {block.upto}"
        f" AND day BETWEEN DATE '{block.first_day}' AND DATE '{block.last_day}')"
        for block in blocks
    )


def _read(spark: "SparkSession", base: Path, folders: list[Path]) -> "DataFrame":
    """Read Parquet files. Escapes [, * and the like, which Spark would take for a pattern."""
    names = [re.sub(r"([\\*?\[\]{}])", r"\\\1", str(folder)) for folder in folders]
    reader = spark.read.schema(COLUMNS).option("basePath", f"file://{base}")
    return reader.parquet(*(f"file://{name}" for name in names))


def _files(run: Path) -> dict[str, int]:
    """The Parquet files of a run, and their sizes in bytes."""
    return {str(file.relative_to(run)): file.stat().st_size for file in run.rglob("*.parquet")}


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
