"""The table of rides: Parquet files by day, and a log that says which of them count.

Both are as Delta Lake prescribes; pyarrow writes the files, delta-rs the log. A file that the log
does not name is one of a run that has not committed yet, or never will, and goes after two days. In
a folder, all is on disk before the next relies on it: files before the log names them, and the log
before anyone is told. Ledgers, and a log that was put aside, lie in folders that a vacuum passes
over, since their names begin with an underscore.

Another writer may rearrange the files (OPTIMIZE). One that changes rides is named, with its
version; and a commit of ours is never built on one that came after our read: a store takes each
version of the log once (`require_one_winner`).
"""

import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from hashlib import sha256
from threading import Barrier
from typing import Literal
from uuid import uuid4

import msgspec
import pyarrow as pa
from deltalake import (
    ColumnProperties,
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Schema,
    Transaction,
    WriterProperties,
)
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction

from analytics import parquet
from analytics.ledger import Broken, Ledger, Owner
from analytics.parquet import DAY, File
from analytics.steps import RunStep
from analytics.store import OPTIONS, Store, refusal
from unified_log.errors import Unavailable
from unified_log.faults import reached
from unified_log.words import printable

OURS = re.compile(r"day=|probe-|_delta_log$|_ledgers$|_broken|\.")  # what runs leave there
VERSION = re.compile(r"_delta_log/([0-9]{20})\.json")
LOG, LEDGERS = "_delta_log", "_ledgers"
APP = "rocket-rides"  # whose transactions these are, in the table's log
SCHEMA = Schema.from_arrow(parquet.schema())
# By default, whoever comes too late to create a table changes the one that is there by then.
ONCE = CommitProperties(max_commit_retries=0)
RACES, RACERS = 3, 8  # on a fast server that takes a version twice, one race in five looks fine
UNNAMED = 48  # hours after which no run can still be about to name a file
# Runs add files of up to 4 MB. Those of a day that has more than so many are merged, into files of
# so many bytes at most.
MANY, LARGEST = 16, 64_000_000
AS_OURS = WriterProperties(
    default_column_properties=ColumnProperties(
        dictionary_enabled=False, encoding="DELTA_BINARY_PACKED"
    )
)
# A checkpoint replaces what came before it, so it must not follow a commit that may yet be lost.
ONLY_COMMIT = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


class CommittedRun(msgspec.Struct, frozen=True):
    """What a run writes into its commit, which added the rides past `after`."""

    after: int
    run: int  # the commit's number among ours
    position: int  # everything up to here is in the table
    ledger: str  # the SHA-256 of the ledger's file, which is named after it
    owners: list[Owner]  # as in that ledger


class CommitInfo(msgspec.Struct):
    """What the writer of a version said of it; `reconciliation` if that was a run."""

    operation: str = ""
    timestamp: int = 0  # milliseconds since 1970
    reconciliation: CommittedRun | None = None


class FileAction(msgspec.Struct, rename="camel"):
    """A file that a version adds or removes."""

    data_change: bool = True


class Action(msgspec.Struct, rename="camel"):
    """A line of the log, as far as it matters here."""

    commit_info: CommitInfo | None = None
    add: FileAction | None = None
    remove: FileAction | None = None


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
            raise Broken(f"its log can't be read: {_reason(error)}") from None

    def _opened(self) -> DeltaTable | None:
        if self.is_away():
            return None
        with self.store.telling():
            return self._ours(DeltaTable(self.store.root, storage_options=OPTIONS))

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
            raise OSError(f"{self.store.root}: {_reason(error)}") from None

    def files(self) -> list[File]:
        """The files that count. Raises Broken."""
        if self.delta is None:
            return []
        rows = pa.table(self.delta.get_add_actions(flatten=True)).to_pylist()
        names = ("path", "size_bytes", "num_records", "min.id", "max.id", "partition.day")
        files = [File(*map(row.get, names)) for row in rows]
        for file in files:
            if None in file:  # another writer may leave them out
                raise Broken(f"{printable(file.path)} has no statistics")
        return files

    def committed_runs(self) -> Iterator[CommittedRun]:
        """What the runs wrote, the newest first, as far back as the log goes."""
        return (run for _, run in self.commits())

    def commits(self) -> Iterator[tuple[int, CommittedRun]]:
        """The same, with when they committed: in milliseconds since 1970.

        `DeltaTable.history` finds nothing in a folder whose name has a # or a ?; this does.
        """
        for _, actions in self._versions():
            for action in actions or ():
                if action.commit_info and action.commit_info.reconciliation:
                    yield action.commit_info.timestamp, action.commit_info.reconciliation

    def strangers(self) -> list[str]:
        """The versions since the newest run's that changed rides, each with what it did.

        One that can't be read may have changed some.
        """
        found = list[str]()
        for version, actions in self._versions():
            if actions is None:
                found.append(f"version {version} (unreadable)")
                continue
            said = [action.commit_info for action in actions if action.commit_info]
            if any(info.reconciliation for info in said):
                break
            files = [file for action in actions for file in (action.add, action.remove) if file]
            if any(file.data_change for file in files):
                operation = printable(said[0].operation) if said else "unnamed"
                found.append(f"version {version} ({operation})")
        return found[::-1]

    def _versions(self) -> Iterator[tuple[int, list[Action] | None]]:
        """The versions, the newest first, each with its actions: None if they can't be read."""
        for info in reversed(self.store.listed(LOG)):
            if not (version := VERSION.fullmatch(info.path)):
                continue
            actions = None
            with suppress(FileNotFoundError, ValueError, ArithmeticError):
                lines = self.store.read(info.path).splitlines()
                actions = [msgspec.json.decode(line, type=Action) for line in lines]
            yield int(version[1]), actions

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
        with self._writing():
            delta = self.delta or self._create()
            before = f"{LOG}/{delta.version():020}"
            delta.create_write_transaction(
                [*(_added(file, now) for file in files), *gone], mode, SCHEMA, [DAY],
                commit_properties=properties, post_commithook_properties=ONLY_COMMIT,
            )  # fmt: skip
            delta.update_incremental()
        self._sync_log(before)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with self.store.telling():
                yield
        except DeltaError as error:
            raise Unavailable(f"{self.store.root} can't be written to: {_reason(error)}") from None

    def _create(self) -> DeltaTable:
        self.delta = DeltaTable.create(
            self.store.root, SCHEMA, partition_by=[DAY], configuration={**self._properties},
            storage_options=OPTIONS, commit_properties=ONCE,
        )  # fmt: skip
        return self.delta

    @property
    def _properties(self) -> dict[str, str]:
        days = f"interval {self.retention_days} days"
        return {"delta.logRetentionDuration": days, "delta.deletedFileRetentionDuration": days}

    def require_one_winner(self) -> None:
        """Raise Unavailable unless, of several who write the same version at once, one succeeds.

        A server that ignores If-None-Match would have one run write over another's commit. Only a
        race tells, and not each: delta-rs looks before it writes. What a crash leaves of a table
        that they create is vacuumed with other files that the log does not name.
        """
        start = Barrier(RACERS, timeout=60)

        def create(root: str) -> DeltaError | None:
            start.wait()
            try:
                DeltaTable.create(root, SCHEMA, storage_options=OPTIONS, commit_properties=ONCE)
            except DeltaError as error:
                return error
            return None

        with self._writing(), ThreadPoolExecutor(RACERS) as pool:
            for _ in range(1 if self.store.is_folder else RACES):
                probe = f"probe-{uuid4().hex}"
                roots = [self.store.below(probe).root] * RACERS
                refused = [error for error in pool.map(create, roots) if error]
                if len(refused) == RACERS:
                    raise refused[0]
                self.store.files.delete_dir(probe)
                if len(refused) < RACERS - 1:
                    raise Unavailable(
                        f"{self.store.root} takes the same version of a table twice: two runs at"
                        " once would lose rides (it must refuse a second put with If-None-Match)"
                    )

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

    def forget(self) -> None:
        """Remove the versions that are old enough, and the files that only these need."""
        if self.delta is None:
            return
        with self.store.telling():
            if not self._properties.items() <= self.delta.metadata().configuration.items():
                self.delta.alter.set_table_properties(
                    self._properties, post_commithook_properties=ONLY_COMMIT
                )
                self.delta.update_incremental()
            self._merge(self.delta)
            self.delta.create_checkpoint()
            self._sync_log(f"{LOG}/{self.delta.version():020}")
            self.delta.cleanup_metadata()
            vacuum = partial(self.delta.vacuum, enforce_retention_duration=False)
            never_named = {*vacuum(UNNAMED, full=True)} - {*vacuum(UNNAMED)}
            old = [*vacuum(self.retention_days * 24), *never_named]
        named = {committed.ledger for committed in self.committed_runs()}
        oldest = datetime.now(UTC) - timedelta(self.retention_days)
        old += [
            info.path
            for info in self.store.listed(LEDGERS)
            if info.mtime < oldest and info.base_name.partition(".")[0] not in named
        ]
        for path in old:
            self.store.delete(path)

    def _merge(self, delta: DeltaTable) -> None:
        """Have delta-rs merge the files of each day that has many; no ride changes.

        They are synced after the commit: a power failure between the two may leave files that can't
        be read, as any damage of them is found, and read again from Postgres.
        """
        before = {file.path: file.day for file in self.files()}
        many = [day for day, files in Counter(before.values()).items() if files > MANY]
        begins = f"{LOG}/{delta.version():020}"
        for day in many:
            delta.optimize.compact(
                [(DAY, "=", str(day))], LARGEST, writer_properties=AS_OURS,
                commit_properties=ONCE, post_commithook_properties=ONLY_COMMIT,
            )  # fmt: skip
        self.store.to_disk(*(file.path for file in self.files() if file.path not in before))
        if many:
            self._sync_log(begins)

    def _sync_log(self, begins: str) -> None:
        """Sync the log to disk: the file whose name begins with `begins`, and all later ones."""
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


def _reason(error: DeltaError) -> str:
    """What it says, without the trace that follows; it may quote what somebody else wrote."""
    return printable(refusal(error))
