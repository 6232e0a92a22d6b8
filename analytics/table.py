"""The table of rides: Parquet files by day, and a log that says which of them count.

Both are as Delta Lake prescribes; pyarrow writes the files, delta-rs the log. A file that the log
does not name is one of a run that has not committed yet, or never will, and goes after two days. In
a folder, all is on disk before the next relies on it: files before the log names them, and the log
before anyone is told. Ledgers, and a log that was put aside, lie in folders that a vacuum passes
over, since their names begin with an underscore.

Another writer may rearrange the files (OPTIMIZE). One that changes rides is named, with its
version (`analytics.versions`); and a commit of ours is never built on one that came after our read:
a store takes each version of the log once (`analytics.probe`).
"""

import json
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from typing import Literal

import msgspec
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction

from analytics.committing import ONLY_COMMIT, SCHEMA, committing, create, reason
from analytics.ledger import Broken, Ledger
from analytics.parquet import DAY, File
from analytics.steps import RunStep
from analytics.store import OPTIONS, Store
from analytics.versions import LOG, CommittedRun
from unified_log.errors import Unavailable
from unified_log.faults import reached
from unified_log.words import printable

OURS = re.compile(r"day=|probe-|_delta_log$|_ledgers$|_broken|\.")  # what runs leave there
LEDGERS = "_ledgers"
APP = "rocket-rides"  # whose transactions these are, in the table's log


class Table:
    """The table in `store`, as it was at the first look; after a commit here, as that left it.

    Versions, and the files that only these need, are kept for `retention_days`. Methods raise
    OSError, too.
    """

    def __init__(self, store: Store, retention_days: int) -> None:
        self.store = store
        self.retention_days = retention_days
        self._was_broken = False

    @cached_property
    def delta(self) -> DeltaTable | None:
        """The table; None when there is none. Raises Broken, or Unavailable."""
        with suppress(DeltaError):
            return self._opened()
        for info in self.store.listed(LOG):  # if the store gives them out, it is the log
            if info.is_file:
                self.store.read(info.path)
        try:
            return self._opened()
        except DeltaError as error:
            self._was_broken = True
            raise Broken(f"its log can't be read: {reason(error)}") from None

    def _opened(self) -> DeltaTable | None:
        if self.is_away():
            return None
        with self.store.telling():
            delta = self._ours(DeltaTable(self.store.root, storage_options=OPTIONS))
        # Without its newest version a checkpoint can be read, but nobody can commit after it.
        newest = f"{LOG}/{delta.version():020}.json"
        if not self.store.has(newest):
            raise DeltaError(f"{newest} is missing")
        return delta

    def is_away(self) -> bool:
        """Whether there is no table now. Raises Unavailable if something else is in its place.

        What runs have left there does not count as something else.
        """
        with self.store.telling():
            if DeltaTable.is_deltatable(self.store.root, OPTIONS):
                return False
        strange = [each.path for each in self.store.listed() if not OURS.match(each.path)]
        if strange:
            raise Unavailable(
                f"{self.store.root}/{strange[0]} does not belong to the warehouse:"
                " set another WAREHOUSE_DIR"
            )
        return True

    def _ours(self, delta: DeltaTable) -> DeltaTable:
        if delta.transaction_version(APP) is None and delta.file_uris():
            raise Unavailable(
                f"{self.store.root} is somebody else's table: set another WAREHOUSE_DIR"
            )
        return delta

    @property
    def run(self) -> int:
        """The number of the newest run; 0 before the first. Raises Broken."""
        if self.delta is None:
            return 0
        try:
            return self.delta.transaction_version(APP) or 0
        except DeltaError as error:  # not the log's: that could be read
            raise OSError(f"{self.store.root}: {reason(error)}") from None

    def files(self) -> list[File]:
        """The files that count. Raises Broken."""
        if self.delta is None:
            return []
        rows = pa.table(self.delta.get_add_actions(flatten=True)).to_pylist()
        names = ("path", "size_bytes", "num_records", "min.id", "max.id", "partition.day")
        files = [File(*map(row.get, names)) for row in rows]
        for file, row in zip(files, rows, strict=True):
            if None in file:  # another writer may leave them out
                raise Broken(f"{printable(file.path)} has no statistics")
            if row.get("null_count.id"):  # no block has these
                raise Broken(f"{printable(file.path)} has rides without ids")
        return files

    def ledger(self, digest: str) -> Ledger:
        """The ledger of this SHA-256. Raises Broken if its file is gone, or is not that."""
        try:
            content = self.store.read(f"{LEDGERS}/{digest}.json")
        except FileNotFoundError:
            raise Broken("its ledger is gone") from None
        return read_ledger(content, digest)

    def write_ledger(self, ledger: Ledger) -> str:
        """Write the ledger's file, on disk when this returns its SHA-256."""
        content = msgspec.json.encode(ledger)
        digest = sha256(content).hexdigest()
        self.store.write(f"{LEDGERS}/{digest}.json", content)
        return digest

    def commit(
        self,
        files: Sequence[File],
        replaced: Sequence[File],
        mode: Literal["append", "overwrite"],
        committed: CommittedRun,
    ) -> None:
        """One transaction, on disk when this returns. The files in `replaced` no longer count.

        Raises Unavailable, as when anybody has committed since the first look.
        """
        said = json.loads(msgspec.json.encode(committed))
        carried = [Transaction(APP, committed.run)]
        properties = CommitProperties({"reconciliation": said}, 0, carried)
        now = int(time.time() * 1000)
        gone = [
            RemoveAction(file.path, True, now, file.size, {DAY: str(file.day)}) for file in replaced
        ]
        with committing(self.store):
            delta = self.delta or self._create()
            before = delta.version()
            delta.create_write_transaction(
                [*(_added(file, now) for file in files), *gone], mode, SCHEMA, [DAY],
                commit_properties=properties, post_commithook_properties=ONLY_COMMIT,
            )  # fmt: skip
            delta.update_incremental()
        self.sync_log(before)

    def _create(self) -> DeltaTable:
        self.delta = create(self.store.root, partition_by=[DAY], configuration={**self.properties})
        return self.delta

    @property
    def properties(self) -> dict[str, str]:
        """The table's own, from which delta-rs knows what is old enough to go."""
        days = f"interval {self.retention_days} days"
        return {"delta.logRetentionDuration": days, "delta.deletedFileRetentionDuration": days}

    def make_way(self) -> None:
        """Put an unreadable log aside, the newest version first.

        So what a crash leaves is a log that is still unreadable, or as it was at an earlier run, or
        none. Raises Unavailable if it can be read by now: then somebody else has done this.
        """
        was_broken = self._was_broken
        with suppress(Broken):
            if self.delta is not None and was_broken:
                raise Unavailable(f"{self.store.root} can be read by now: run again")
            return
        aside = f"_broken/{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        for info in reversed(self.store.listed(LOG)):
            if info.is_file:
                self.store.write(f"{aside}/{info.base_name}", self.store.read(info.path))
                self.store.delete(info.path)
                reached(RunStep.PUT_ASIDE)
        self.delta = None

    def sync_log(self, version: int) -> None:
        """Sync the log to disk, from the files of this version on."""
        begins = f"{LOG}/{version:020}"
        self.store.to_disk(*(info.path for info in self.store.listed(LOG) if info.path >= begins))


def _added(file: File, now: int) -> AddAction:
    stats = {
        "numRecords": file.rides,
        "minValues": {"id": file.first},
        "maxValues": {"id": file.last},
        "nullCount": {"id": 0},
    }
    return AddAction(file.path, file.size, {DAY: str(file.day)}, now, True, json.dumps(stats))


def read_ledger(content: bytes, digest: str) -> Ledger:
    """A ledger's file. Raises Broken if it is not the one of this SHA-256."""
    if sha256(content).hexdigest() != digest:
        raise Broken("its ledger was altered")
    try:
        return msgspec.json.decode(content, type=Ledger)
    except (ValueError, ArithmeticError) as error:
        raise Broken(f"its ledger can't be read: {error}") from None
