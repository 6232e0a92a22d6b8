"""The table of rides: Parquet files by day, and a log that says which of them count.

Both are as Delta Lake prescribes; pyarrow writes the files, delta-rs the log. Neither syncs
anything to disk, so that is done here: files before the log names them, and the log before anyone
is told. Ledgers lie beside the log, in a folder that a vacuum passes over, since its name begins
with an underscore.

Another writer may rearrange the files (OPTIMIZE). One that changes rides is named, with its
version; and a commit of ours is never built on one that came after our read.
"""

import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction

from analytics import parquet
from analytics.ledger import Broken, Ledger, Owner
from analytics.parquet import DAY, File, to_disk
from unified_log.errors import Unavailable, in_one_line
from unified_log.words import printable

OURS = re.compile(r"day=|_delta_log$|_ledgers$|\.")  # the names of what runs leave in the folder
VERSION = re.compile(r"[0-9]{20}")
LEDGERS = "_ledgers"
APP = "rocket-rides"  # whose transactions these are, in the table's log
SCHEMA = Schema.from_arrow(parquet.schema())
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
    """The table in `folder`, as it was at the first look; after a commit here, as that left it.

    Versions, and the files that only these need, are kept for `retention_days`.
    """

    def __init__(self, folder: Path, retention_days: int) -> None:
        self.folder = folder
        self.retention_days = retention_days
        self._log = folder / "_delta_log"
        self._ledgers = folder / LEDGERS

    @cached_property
    def delta(self) -> DeltaTable | None:
        """The table; None when there is none. Raises Broken, or Unavailable."""
        try:
            return None if self.is_away() else self._ours(DeltaTable(str(self.folder)))
        except DeltaError as error:
            raise Broken(f"its log can't be read: {_reason(error)}") from None
        except OSError as error:
            raise Unavailable(f"{self.folder} can't be read: {error}") from None

    def is_away(self) -> bool:
        """Whether there is no table now. Raises Unavailable if something else is in its place.

        What runs have left there does not count as something else.
        """
        if DeltaTable.is_deltatable(str(self.folder)):
            return False
        strange = [path for path in self._content() if not OURS.match(path.name)]
        if strange:
            raise Unavailable(
                f"{strange[0]} does not belong to the warehouse: set another WAREHOUSE_DIR"
            )
        return True

    def _content(self) -> list[Path]:
        return sorted(self.folder.iterdir()) if self.folder.is_dir() else []

    def _ours(self, delta: DeltaTable) -> DeltaTable:
        if delta.transaction_version(APP) is None and delta.file_uris():
            raise Unavailable(f"{self.folder} is somebody else's table: set another WAREHOUSE_DIR")
        return delta

    @property
    def run(self) -> int:
        """The number of the newest run; 0 before the first. Raises Broken."""
        return (self.delta and self.delta.transaction_version(APP)) or 0

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

    def require(self, file: File) -> Path:
        """Where a file is. Raises Broken if it is not there as the log has it."""
        path = self.folder / file.path
        try:
            size = path.stat().st_size
        except OSError:
            raise Broken(f"{file.path} is missing") from None
        if size != file.size:
            raise Broken(f"{file.path} has {size} bytes, not {file.size}")
        return path

    def committed_runs(self) -> Iterator[CommittedRun]:
        """What the runs wrote, the newest first, as far back as the log goes.

        `DeltaTable.history` finds nothing in a folder whose name has a # or a ?; this does.
        """
        for _, actions in self._versions():
            for action in actions or ():
                if action.commit_info and action.commit_info.reconciliation:
                    yield action.commit_info.reconciliation

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
        for version in sorted(self._log.glob("*.json"), reverse=True):
            if not VERSION.fullmatch(version.stem):
                continue
            actions = None
            with suppress(OSError, ValueError, ArithmeticError):
                lines = version.read_bytes().splitlines()
                actions = [msgspec.json.decode(line, type=Action) for line in lines]
            yield int(version.stem), actions

    def ledger(self, digest: str) -> Ledger:
        """The ledger of this SHA-256. Raises Broken if its file is gone, or is not that."""
        try:
            content = (self._ledgers / f"{digest}.json").read_bytes()
        except OSError:
            raise Broken("its ledger is gone") from None
        return read_ledger(content, digest)

    def write_ledger(self, ledger: Ledger) -> str:
        """Write the ledger's file, on disk when this returns its SHA-256. Raises OSError."""
        content = msgspec.json.encode(ledger)
        digest = sha256(content).hexdigest()
        self._ledgers.mkdir(parents=True, exist_ok=True)
        path = self._ledgers / f"{digest}.json"
        path.write_bytes(content)
        for each in (path, self._ledgers, self.folder):
            to_disk(each)
        return digest

    def place(self, folder: Path, file: File) -> AddAction:
        """Move a file from `folder` to its place, on disk. It counts once that is committed.

        Raises OSError.
        """
        target = self.folder / file.path
        target.parent.mkdir(exist_ok=True)
        (folder / file.path).rename(target)
        to_disk(target.parent)
        to_disk(self.folder)
        stats = {
            "numRecords": file.rides,
            "minValues": {"id": file.first},
            "maxValues": {"id": file.last},
            "nullCount": {"id": 0},
        }
        at = int(target.stat().st_mtime * 1000)
        return AddAction(file.path, file.size, {DAY: str(file.day)}, at, True, json.dumps(stats))

    def commit(
        self,
        files: list[AddAction],
        replaced: list[File],
        mode: Literal["append", "overwrite"],
        committed: CommittedRun,
    ) -> None:
        """One transaction, on disk when this returns. The files in `replaced` no longer count.

        Raises Unavailable, as when anybody has committed since the first look, or OSError.
        """
        said = json.loads(msgspec.json.encode(committed))
        carried = [Transaction(APP, committed.run)]
        properties = CommitProperties({"reconciliation": said}, 0, carried)
        now = int(time.time() * 1000)
        gone = [
            RemoveAction(file.path, True, now, file.size, {DAY: str(file.day)}) for file in replaced
        ]
        try:
            delta = self.delta or self._create()
            before = f"{delta.version():020}"
            delta.create_write_transaction(
                [*files, *gone], mode, SCHEMA, [DAY],
                commit_properties=properties, post_commithook_properties=ONLY_COMMIT,
            )  # fmt: skip
            delta.update_incremental()
        except DeltaError as error:
            raise Unavailable(f"{self.folder} can't be written to: {_reason(error)}") from None
        self._sync_log(before)

    def _create(self) -> DeltaTable:
        self.delta = DeltaTable.create(
            str(self.folder), SCHEMA, partition_by=[DAY], configuration={**self._properties}
        )
        to_disk(self.folder)
        return self.delta

    @property
    def _properties(self) -> dict[str, str]:
        days = f"interval {self.retention_days} days"
        return {"delta.logRetentionDuration": days, "delta.deletedFileRetentionDuration": days}

    def forget(self) -> None:
        """Remove the versions that are old enough, and the files that only these need."""
        if self.delta is None:
            return
        if not self._properties.items() <= self.delta.metadata().configuration.items():
            self.delta.alter.set_table_properties(
                self._properties, post_commithook_properties=ONLY_COMMIT
            )
            self.delta.update_incremental()
        self.delta.create_checkpoint()
        self._sync_log(f"{self.delta.version():020}")
        self.delta.cleanup_metadata()
        hours = self.retention_days * 24
        for path in self.delta.vacuum(hours, enforce_retention_duration=False, full=True):
            (self.folder / path).unlink(missing_ok=True)
        named = {committed.ledger for committed in self.committed_runs()}
        for ledger in self._ledgers.glob("*.json"):
            if ledger.stem not in named and ledger.stat().st_mtime < time.time() - hours * 3600:
                ledger.unlink(missing_ok=True)

    def _sync_log(self, begins: str) -> None:
        """Sync the log to disk: the file whose name begins with `begins`, and all later ones."""
        for path in self._log.iterdir():
            if path.name >= begins:
                to_disk(path)
        to_disk(self._log)


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
    return printable(in_one_line(error).partition(" 0: ")[0])
