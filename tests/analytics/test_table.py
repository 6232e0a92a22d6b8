"""The table, night by night: what counts, what is kept for readers, what goes."""

import os
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from analytics import parquet
from analytics.ledger import Ledger
from analytics.pieces import BLOCK
from analytics.result import Tally
from analytics.store import Store
from analytics.tidying import MANY
from analytics.versions import committed_runs, strangers
from analytics.warehouse import Warehouse
from tests.support.object_stores import root_of
from tests.support.warehouse import (
    DAY_ONE,
    DAYS,
    METRE,
    OWNER,
    content,
    delta,
    night,
    nights,
    table,
    write,
)
from unified_log.errors import Unavailable


def on_disk(folder: Path) -> set[str]:
    rides = folder / "rides"
    return {str(file.relative_to(rides)) for file in rides.glob("day=*/*.parquet")}


def named(folder: Path) -> set[str]:
    return {file.path for file in table(folder).files()}


@pytest.mark.proves("night")
def test_a_night_that_starts_at_the_first_ride_replaces_all_before_it(place: Path) -> None:
    ledger = nights(place, 2)
    assert content(place) == ledger.total == Tally(6, 6 * METRE)
    rebuilt = night(place, Ledger(), (DAY_ONE, [1, 2, 3]))
    assert content(place) == rebuilt.total == Tally(3, 3 * METRE)
    assert night(place, Ledger()).total == Tally()
    assert content(place) == Tally()


def test_a_night_that_two_processes_publish_counts_once(tmp_path: Path) -> None:
    base = nights(tmp_path, 1)
    one, other = Warehouse(root_of(tmp_path)), Warehouse(root_of(tmp_path))
    assert one.table.run == other.table.run == 1
    (piece, of_one), (_, of_other) = (write(each, DAY_ONE, [4, 5]) for each in (one, other))
    ledger = base.extended(5, [piece])
    one.publish(of_one, one.note(base.position, ledger, OWNER))
    with pytest.raises(Unavailable, match="can't be written to"):
        other.publish(of_other, other.note(base.position, ledger, OWNER))
    assert content(tmp_path) == ledger.total


def test_all_files_with_rides_of_a_block_are_read_for_it_and_no_others(tmp_path: Path) -> None:
    ids = [1, BLOCK], [BLOCK + 1], [2 * BLOCK], [2 * BLOCK + 1]
    ledger = night(tmp_path, Ledger(), *zip(DAYS, ids, strict=True))
    warehouse = Warehouse(root_of(tmp_path))
    found = [
        sorted(f.day for f in warehouse.files_of([(block.after, block.upto)]))
        for block in ledger.blocks
    ]
    assert found == [DAYS[:1], DAYS[1:3], DAYS[3:]]


def test_the_files_of_a_day_that_has_many_are_merged_and_no_ride_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they are merged into is on disk."""
    ledger = night(tmp_path, Ledger(), (DAYS[1], [1]))
    for ride in range(2, MANY + 2):
        ledger = night(tmp_path, ledger, (DAY_ONE, [ride]))
    assert len(named(tmp_path)) == MANY + 1
    before, synced = delta(tmp_path).version(), list[str]()
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(name(tmp_path, descriptor)))
    ledger = night(tmp_path, ledger, (DAY_ONE, [MANY + 2]))
    assert sorted(file.day for file in table(tmp_path).files()) == DAYS[:2]
    assert content(tmp_path) == ledger.total == Tally(MANY + 2, (MANY + 2) * METRE)
    merged = next(file for file in table(tmp_path).files() if file.day == DAY_ONE)
    assert (merged.rides, merged.first, merged.last) == (MANY + 1, 2, MANY + 2)
    assert f"rides/{merged.path}" in synced
    read = parquet.read(table(tmp_path).store, [merged[:2]], 0, BLOCK)
    assert [*read.ids] == [*range(2, MANY + 3)]
    assert strangers(table(tmp_path).store) == []
    earlier = delta(tmp_path)
    earlier.load_as_version(before)
    assert earlier.to_pyarrow_table().num_rows == MANY + 1
    assert night(tmp_path, ledger, (DAY_ONE, [MANY + 3])).total == content(tmp_path)
    delta(tmp_path).delete(f"day = '{DAYS[1]}'")  # a whole file, and nothing in its place
    version = delta(tmp_path).version()
    assert strangers(table(tmp_path).store) == [f"version {version} (DELETE)"]


def age(folder: Path, days: int, files: str = "*") -> None:
    """What is there now has been there for so many days."""
    at = (datetime.now(UTC) - timedelta(days)).timestamp()
    for path in (folder / "rides").rglob(files):
        os.utime(path, (at, at))


def test_a_reader_is_not_disturbed_by_a_night_that_replaces_all(tmp_path: Path) -> None:
    """Only what no version has ever named is gone."""
    nights(tmp_path, 1)
    reader = delta(tmp_path)
    write(Warehouse(root_of(tmp_path)), DAYS[3], [9])
    age(tmp_path, days=29)
    night(tmp_path, Ledger(), (DAYS[0], [1, 2, 3, 4]))
    assert not set(reader.file_uris()) & set(delta(tmp_path).file_uris())
    assert len(reader.to_pyarrow_table()) == 3
    assert len(delta(tmp_path, reader.version()).to_pyarrow_table()) == 3
    assert not any(str(DAYS[3]) in path for path in on_disk(tmp_path))


def test_what_no_version_needs_goes_after_the_retention(place: Path) -> None:
    ledger = nights(place, 2)
    crashed = Warehouse(root_of(place))
    write(crashed, DAYS[2], [7])
    crashed.table.store.write("probe-1/_delta_log/0.json", b"{}")
    age(place, days=31)
    warehouse = Warehouse(root_of(place))
    ledger = night(place, ledger, (DAYS[2], [7, 8]), (DAYS[3], [9]), tidied=False)
    assert on_disk(place) > named(place)
    warehouse.tidy()
    assert on_disk(place) == named(place)
    assert not [*(place / "rides").glob("probe-*/_delta_log/*")]
    assert content(place) == ledger.total
    assert [each.run for each in committed_runs(table(place).store)] == [3]
    assert table(place).run == 3


DELETED_AT = re.compile(r'(?<="deletionTimestamp":)\d+')


def three_days_before(milliseconds: re.Match[str]) -> str:
    return str(int(milliseconds[0]) - 3 * 86_400_000)


def test_another_retention_takes_effect(tmp_path: Path) -> None:
    nights(tmp_path, 1)
    replaced = on_disk(tmp_path)
    night(tmp_path, Ledger(), (DAY_ONE, [1]), tidied=False)
    newest = max((tmp_path / "rides/_delta_log").glob("*.json"))
    newest.write_text(DELETED_AT.sub(three_days_before, newest.read_text()))
    for days in (30, 1):
        warehouse = Warehouse(root_of(tmp_path), retention_days=days)
        age(tmp_path, days=3)
        warehouse.tidy()
        assert on_disk(tmp_path) & replaced == (replaced if days == 30 else set())
        found = delta(tmp_path)
        assert set(found.metadata().configuration.values()) == {f"interval {days} days"}
    assert [each.run for each in committed_runs(table(tmp_path).store)] == []


def test_a_thousand_days_and_more_are_written_at_once(tmp_path: Path) -> None:
    days = 1100
    first = date(2020, 1, 1).toordinal()
    columns = [
        pa.array(range(1, days + 1), pa.int64()),
        pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * days).cast(pa.timestamp("us", "UTC")),
        pa.array([METRE] * days).cast(pa.decimal128(12, 3)),
        pa.array([date.fromordinal(first + number) for number in range(days)]),
    ]
    rides = pa.RecordBatch.from_arrays(columns, schema=parquet.schema())
    files = parquet.write([rides], Store(str(tmp_path)))
    assert sum(file.rides for file in files) == len({file.day for file in files}) == days


def test_what_is_not_the_warehouses_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "rides").mkdir(parents=True)
    (tmp_path / "rides" / "mine.csv").touch()
    with pytest.raises(Unavailable, match=r"mine\.csv does not belong to the warehouse"):
        nights(tmp_path, 1)
    assert (tmp_path / "rides" / "mine.csv").exists()


def test_another_table_is_left_alone(tmp_path: Path) -> None:
    write_deltalake(f"{root_of(tmp_path)}/rides", pa.table({"a": [1, 2]}))
    with pytest.raises(Unavailable, match="is somebody else's table"):
        nights(tmp_path, 1)
    assert len(delta(tmp_path).to_pyarrow_table()) == 2


def name(folder: Path, descriptor: int) -> str:
    """Of the open file, below the folder."""
    return str(Path(f"/proc/self/fd/{descriptor}").readlink().relative_to(folder))


def test_all_is_on_disk_before_the_next_relies_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files and their folders, then the commit, the log and its folder, and then a checkpoint."""
    events: list[str] = []

    def noted(module: Any, name: str, what: Callable[..., str]) -> None:
        real = getattr(module, name)

        def call(*arguments: Any, **options: Any) -> Any:
            result = real(*arguments, **options)
            events.append(what(*arguments))
            return result

        monkeypatch.setattr(module, name, call)

    noted(os, "fsync", partial(name, tmp_path))
    noted(DeltaTable, "create", lambda *_: "created")
    noted(DeltaTable, "create_write_transaction", lambda *_: "commit")
    noted(DeltaTable, "create_checkpoint", lambda *_: "checkpoint")
    nights(tmp_path, 1)
    folders = [f"rides/day={day}" for day in DAYS[:2]]
    commit = events.index("commit")
    for folder in (*folders, "rides", "."):
        assert folder in events[:commit]
    assert sum(event.endswith(".parquet") for event in events[:commit]) == len(folders)
    log = [f"rides/_delta_log/{version:020}.json" for version in (0, 1)]
    assert {*log, "rides/_delta_log", "rides"} <= {*events[commit : events.index("checkpoint")]}
