"""The warehouse: the rides that Spark has already read, as a Delta table, partitioned by day.

    rides/day=2026-11-21/*.parquet   the rides; any engine that reads Delta tables reads them
    rides/_delta_log/                which of these files count, and which ledger is theirs
    rides/_ledgers/*.json            what the rides add up to, block by block

It is in a folder, or in an object store (`analytics.store`). Spark's tasks write a run's files
where they will stay. The driver names them in one transaction of the table, which carries the run's
number. No run counts twice, and of two at once, in whatever database, one commits: the other ends
with a sentence. Nobody reads what a crash leaves, and a later run removes it after two days.

The driver and all executors must reach the same place under the same name.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Literal

from deltalake.exceptions import DeltaError

from analytics.ledger import Broken, Ledger, Owner
from analytics.parquet import File
from analytics.probe import require_one_winner
from analytics.store import Store
from analytics.table import Table
from analytics.tidying import tidy
from analytics.versions import CommittedRun, commits, committed_runs
from unified_log.errors import Unavailable

UNTIDY = (Broken, Unavailable, DeltaError, OSError)


class Warehouse:
    """The warehouse at `root`. Its methods raise OSError, too, when that can't be reached."""

    def __init__(self, root: str | Path, retention_days: int = 30) -> None:
        store = Store(str(root))
        self.root = store.root
        self.table = Table(store.below("rides"), retention_days)

    def make_ready(self) -> None:
        """Find out whether this run can write there. Raises Unavailable."""
        require_one_winner(self.table.store)

    def tidy(self) -> None:
        """Remove what nobody has needed for long, after a run has published. Raises UNTIDY."""
        tidy(self.table)

    def newest(self) -> CommittedRun | None:
        """What its newest run wrote, even if the table can't be read; None before the first."""
        return next(committed_runs(self.table.store), None)

    def owners(self) -> list[Owner]:
        """Whose rides these are, the newest last."""
        newest = self.newest()
        return newest.owners if newest else []

    def committed_run(self) -> CommittedRun | None:
        """What the run wrote that left the table as it is; None before the first. Raises Broken."""
        return newest[1] if (newest := self.commit()) else None

    def commit(self) -> tuple[int, CommittedRun] | None:
        """The same, with when it committed: in milliseconds since 1970."""
        if not (run := self.table.run):
            return None
        found = (commit for commit in commits(self.table.store) if commit[1].run == run)
        if (newest := next(found, None)) is None:
            raise Broken(f"its log does not say what run {run} wrote")
        return newest

    def files_of(self, ranges: Collection[tuple[int, int]]) -> list[File]:
        """The files that may have rides with `after < id <= upto`. Raises Broken."""
        return [
            file
            for file in self.table.files()
            if any(after < file.last and file.first <= upto for after, upto in ranges)
        ]

    def note(self, after: int, ledger: Ledger, owner: Owner) -> CommittedRun:
        """Write the ledger of the next run's commit to its file, and return what that is to say."""
        ledger = ledger.after_run(self.table.run + 1, owner)
        digest = self.table.write_ledger(ledger)
        return CommittedRun(after, ledger.run, ledger.position, digest, ledger.owners)

    def publish(
        self, files: Sequence[File], committed: CommittedRun, replaced: Sequence[File] = ()
    ) -> None:
        """Make these files count, in place of those in `replaced`. Raises Unavailable.

        Where the run begins at 0, they replace all files that were there.
        """
        mode: Literal["append", "overwrite"] = "append" if committed.after else "overwrite"
        self.table.commit(files, replaced, mode, committed)
