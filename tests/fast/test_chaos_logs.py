"""What chaos makes of the lines that servers print."""

from pathlib import Path

from lab.chaos.logs import broken

FULL = 'PANIC:  could not write to file "pg_wal/xlogtemp.7": No space left on device'
LOST = "PANIC:  could not locate a valid checkpoint record"


def test_a_panic_on_a_full_disk_is_expected_where_chaos_fills_disks(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"{FULL}\n{LOST}\n")
    assert broken([log]) == [FULL, LOST]
    assert broken([log], disks_are_filled=True) == [LOST]
