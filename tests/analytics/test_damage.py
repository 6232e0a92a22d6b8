"""A warehouse that is not as its runs left it: that is noticed, and a run can replace it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from analytics import parquet
from analytics.ledger import Broken, Ledger
from analytics.warehouse import Warehouse
from tests.support.object_stores import root_of
from tests.support.warehouse import DAY_ONE, content, held, night, nights


def log_of(folder: Path) -> list[Path]:
    """The log's files, oldest first, without which no version can be read."""
    for checkpoint in (folder / "rides" / "_delta_log").glob("*checkpoint*"):
        checkpoint.unlink()
    return sorted((folder / "rides" / "_delta_log").glob("*.json"))


def next_version(folder: Path) -> Path:
    newest = log_of(folder)[-1]
    return newest.with_name(f"{int(newest.stem) + 1:020}.json")


def say(folder: Path, **changes: object) -> None:
    """Change what the newest run has said."""
    newest = log_of(folder)[-1]
    lines = [json.loads(line) for line in newest.read_text().splitlines()]
    [info] = [line["commitInfo"] for line in lines if "commitInfo" in line]
    info["reconciliation"].update(changes)
    newest.write_text("".join(json.dumps(line) + "\n" for line in lines))


def tear(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9])


def ledger_of(folder: Path) -> Path:
    night = Warehouse(root_of(folder)).committed_run()
    assert night
    return folder / "rides" / "_ledgers" / f"{night.ledger}.json"


def say_more_rides(folder: Path) -> None:
    """In sums that agree with one another."""
    ledger = json.loads(ledger_of(folder).read_text())
    ledger["blocks"][0]["rides"] = ledger["total"][0] = 4
    ledger_of(folder).write_text(json.dumps(ledger))


def lose_the_newest(folder: Path) -> None:
    """Its checkpoint is left."""
    Warehouse(root_of(folder)).tidy()
    max((folder / "rides" / "_delta_log").glob("*.json")).unlink()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a night is lost": lambda folder: log_of(folder)[-2].unlink(),
    "the newest is lost": lose_the_newest,
    "a night is torn": lambda folder: tear(log_of(folder)[-2]),
    # As after a loss of power: the run's row and its ledger can't be there yet.
    "half a commit": lambda folder: next_version(folder).write_bytes(b'{"commitInfo":{"timest'),
    "zeros": lambda folder: next_version(folder).write_bytes(bytes(100)),
    "another run": lambda folder: say(folder, run=1),
    "another ledger": lambda folder: say(folder, ledger="0" * 64),
    "no number": lambda folder: say(folder, position="1e999999999"),
    "more rides": say_more_rides,
    "no ledger": lambda folder: ledger_of(folder).unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_log_that_is_not_as_the_runs_left_it_is_refused_and_can_be_replaced(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    ledger = Ledger()
    for ride in (1, 2, 3):
        ledger = night(tmp_path, ledger, (DAY_ONE, [ride]), tidied=False)
    damage(tmp_path)
    with pytest.raises(Broken):
        held(tmp_path)
    rebuilt = night(tmp_path, Ledger(), (DAY_ONE, [1, 2, 3, 4]))
    assert content(tmp_path) == rebuilt.total == held(tmp_path).total


def test_an_empty_commit_counts_for_nothing(tmp_path: Path) -> None:
    ledger = nights(tmp_path, 1)
    next_version(tmp_path).touch()
    assert held(tmp_path).total == ledger.total
    ledger = night(tmp_path, ledger, (DAY_ONE, [4]))
    assert content(tmp_path) == ledger.total


def test_a_warehouse_that_was_set_back_by_a_night_continues_from_there(tmp_path: Path) -> None:
    """As if the folder came from a backup."""
    before = nights(tmp_path, 1)
    night(tmp_path, before, (DAY_ONE, [4, 5]), tidied=False)
    log_of(tmp_path)[-1].unlink()
    told = held(tmp_path)
    assert (told.total, told.blocks) == (before.total, before.blocks)
    ledger = night(tmp_path, told, (DAY_ONE, [4, 5, 6]))
    assert content(tmp_path) == ledger.total


OF_FILES: list[tuple[Callable[[Path], object], str]] = [
    (lambda file: file.write_bytes(b""), "has 0 bytes"),
    (lambda file: file.write_bytes(file.read_bytes()[:-1]), "bytes, not"),
    (Path.unlink, "is missing"),
]


def test_a_file_that_is_not_as_the_log_has_it_is_not_read(place: Path) -> None:
    nights(place, 2)
    table = Warehouse(root_of(place)).table
    for file, (damage, what) in zip(table.files()[:3], OF_FILES, strict=True):
        damage(place / "rides" / file.path)
        with pytest.raises(ValueError, match=what):
            parquet.read(table.store, [file[:2]], 0, file.last)
