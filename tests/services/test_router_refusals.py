"""Moves of slots that can't be: each is refused in one sentence, before anything is done."""

from collections.abc import Callable
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from cells.router.move import move
from cells.router.slots import read
from tests.support.cells import Cells
from unified_log.errors import Unavailable


def spoiled(path: Path, text: Callable[[str], str]) -> None:
    path.write_text(text(path.read_text()))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda text: text[5:], "must have the 256 slots 00 to ff, each once; it has 255 lines"),
        (lambda text: text + "00 0\n", "must have the 256 slots 00 to ff, each once; it has 257"),
        (lambda text: text[:-5] + "ff 90\n", "a line is a slot and a cell from 0 to 89, not ff 90"),
        (lambda text: text[:-5] + "ff 0 1\n", "a line is a slot and a cell from 0 to 89, not ff 0"),
        (lambda text: text[5:] + "00 5\n", "CELL_5_DATABASE_URL is not set: which database has"),
    ],
)
def test_a_map_that_is_none_moves_nothing(
    cells: Cells, change: Callable[[str], str], why: str
) -> None:
    spoiled(cells.map, change)
    with_it = cells.map.read_text()
    refused = cells.move("00", 1)
    assert refused.returncode == 1
    assert refused.stderr.startswith("not moved: ")
    assert why in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert cells.map.read_text() == with_it


@pytest.mark.parametrize(
    ("slots", "cell", "said"),
    [
        ("00", 2, "not moved: CELL_2_DATABASE_URL is not set: which database has cell 2?"),
        ("00", 90, "python -m cells.router: argument CELL: 90 is no cell from 0 to 89; --help"),
        (
            "fg",
            1,
            "python -m cells.router: argument SLOTS: fg is no slot from 00 to ff, and",
        ),
        ("00-", 1, "python -m cells.router: argument SLOTS: 00- is no slot from 00 to ff, and"),
        ("80-7f", 1, "python -m cells.router: argument SLOTS: 80-7f is no slot from 00 to ff, and"),
    ],
)
def test_a_slot_or_a_cell_that_is_not_there_moves_nothing(
    cells: Cells, slots: str, cell: int, said: str
) -> None:
    refused = cells.move(slots, cell)
    assert refused.stderr.startswith(said)
    assert len(refused.stderr.splitlines()) == 1
    assert set(read(cells.map).values()) == {0}
    assert cells.takers("k") == [0, 1]  # neither refuses anything


def test_a_map_that_cannot_be_written_is_noticed_before_anything_is_done(cells: Cells) -> None:
    (cells.map.parent / f"{cells.map.name}.new").mkdir()
    refused = cells.move("00", 1)
    (cells.map.parent / f"{cells.map.name}.new").rmdir()
    assert refused.stderr.startswith("not moved: ")
    assert "slots.map.new" in refused.stderr
    assert cells.takers("k") == [0, 1]


READER = "-c role=pg_read_all_data"


@pytest.mark.parametrize(
    ("databases", "why"),
    [
        ({1: "postgresql://127.0.0.1:1/rides"}, "Postgres can't be reached"),
        ({1: ""}, "CELL_1_DATABASE_URL is not set: which database has cell 1?"),
        ({0: 1, 1: 0}, "CELL=0 is refused: the database is cell 1"),
        ({0: READER}, "CELL_0_DATABASE_URL's role does not own idempotency_keys"),
        ({1: READER}, "CELL_1_DATABASE_URL's role does not own idempotency_keys"),
    ],
)
def test_a_database_that_is_not_right_is_noticed_before_anything_is_done(
    cells: Cells, databases: dict[int, str | int], why: str
) -> None:
    urls = dict(cells.databases)
    for cell, given in databases.items():
        if isinstance(given, int):
            urls[cell] = cells.databases[given]
        elif given == READER:
            urls[cell] = make_conninfo(cells.databases[cell], options=given)
        elif given:
            urls[cell] = given
        else:
            del urls[cell]
    with pytest.raises(Unavailable, match=why):
        move({"00"}, int(1 in urls), cells.map, cells.router, urls)
    assert cells.takers("k") == [0, 1]
