"""What is done to the table after a run: many small files become few, and old ones go."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial

from deltalake import ColumnProperties, DeltaTable, WriterProperties

from analytics.committing import ONCE, ONLY_COMMIT
from analytics.parquet import DAY
from analytics.table import LEDGERS, Table
from analytics.versions import committed_runs

UNNAMED = 48  # hours after which no run can still be about to name a file
# Runs add files of up to 4 MB. Those of a day that has more than so many are merged, into files of
# so many bytes at most.
MANY, LARGEST = 16, 64_000_000
AS_OURS = WriterProperties(
    default_column_properties=ColumnProperties(
        dictionary_enabled=False, encoding="DELTA_BINARY_PACKED"
    )
)


def tidy(table: Table) -> None:
    """Remove the versions that are old enough, and the files that only these need.

    Raises Broken, DeltaError or OSError.
    """
    store, days = table.store, table.retention_days
    if (delta := table.delta) is None:
        return
    with store.telling():
        if not table.properties.items() <= delta.metadata().configuration.items():
            delta.alter.set_table_properties(
                table.properties, post_commithook_properties=ONLY_COMMIT
            )
            delta.update_incremental()
        _merge(table, delta)
        delta.create_checkpoint()
        table.sync_log(delta.version())
        delta.cleanup_metadata()
        vacuum = partial(delta.vacuum, enforce_retention_duration=False)
        never_named = {*vacuum(UNNAMED, full=True)} - {*vacuum(UNNAMED)}
        old = [*vacuum(days * 24), *never_named]
    named = {committed.ledger for committed in committed_runs(store)}
    oldest = datetime.now(UTC) - timedelta(days)
    old += [
        info.path
        for info in store.listed(LEDGERS)
        if info.mtime < oldest and info.base_name.partition(".")[0] not in named
    ]
    for path in old:
        store.delete(path)


def _merge(table: Table, delta: DeltaTable) -> None:
    """Have delta-rs merge the files of each day that has many; no ride changes.

    They are synced after the commit: a power failure between the two may leave files that can't be
    read, as any damage of them is found, and read again from Postgres.
    """
    before = {file.path: file.day for file in table.files()}
    begins = delta.version()
    many = [day for day, files in Counter(before.values()).items() if files > MANY]
    for day in many:
        delta.optimize.compact(
            [(DAY, "=", str(day))], LARGEST, writer_properties=AS_OURS,
            commit_properties=ONCE, post_commithook_properties=ONLY_COMMIT,
        )  # fmt: skip
    if many:
        table.store.to_disk(*(file.path for file in table.files() if file.path not in before))
        table.sync_log(begins)
