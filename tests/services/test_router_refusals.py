"""Moves of slots that can't be: each is refused in one sentence, before anything is done."""

from argparse import ArgumentTypeError

import pytest
from psycopg.conninfo import make_conninfo

from cells.router.__main__ import some_slots
from cells.router.move import move
from cells.router.slots import read
from tests.support.cells import Cells
from unified_log.errors import Refused, Unavailable


def refused(cells: Cells, slots: str, cell: int) -> str:
    """The one line that the command says; it has ended in vain."""
    done = cells.move(slots, cell)
    assert done.returncode
    [line] = done.stderr.splitlines()
    return line


def test_a_map_that_is_none_moves_nothing(cells: Cells) -> None:
    good = cells.map.read_text()
    each_once = "must have the 256 slots 00 to ff, each once; it has "
    for spoiled, why in (
        (good + "00 0\n", f"{each_once}257"),
        (good[:-5] + "ff 90\n", "a line is a slot and a cell from 0 to 89, not ff 90"),
        (good[:-5] + "ff 0 1\n", "a line is a slot and a cell from 0 to 89, not ff 0"),
        (good[5:], f"{each_once}255"),
    ):
        cells.map.write_text(spoiled)
        with pytest.raises(Refused, match=why):
            read(cells.map)
    for spoiled, why in (
        (good[5:], f"{each_once}255 lines"),
        (good[5:] + "00 5\n", "CELL_5_DATABASE_URL is not set: which database has"),
    ):
        cells.map.write_text(spoiled)
        said = refused(cells, "00", 1)
        assert said.startswith("not moved: ")
        assert why in said
        assert cells.map.read_text() == spoiled


def test_a_slot_or_a_cell_that_is_not_there_moves_nothing(cells: Cells) -> None:
    for slots in ("fg", "00-", "80-7f"):
        with pytest.raises(ArgumentTypeError, match=f"{slots} is no slot from 00 to ff, and no"):
            some_slots(slots)
    for given, said in {
        ("00", 2): "not moved: CELL_2_DATABASE_URL is not set: which database has cell 2?",
        ("00", 90): "python -m cells.router: argument CELL: 90 is no cell from 0 to 89; --help",
        ("fg", 1): "python -m cells.router: argument SLOTS: fg is no slot from 00 to ff, and",
    }.items():
        assert refused(cells, *given).startswith(said)
    assert set(read(cells.map).values()) == {0}
    assert cells.takers("k") == [0, 1]  # neither refuses anything


def test_a_map_that_cannot_be_written_is_noticed_before_anything_is_done(cells: Cells) -> None:
    (cells.map.parent / f"{cells.map.name}.new").mkdir()
    said = refused(cells, "00", 1)
    (cells.map.parent / f"{cells.map.name}.new").rmdir()
    assert said.startswith("not moved: ")
    assert "slots.map.new" in said
    assert cells.takers("k") == [0, 1]


def test_a_database_that_is_not_right_is_noticed_before_anything_is_done(cells: Cells) -> None:
    zero, one = cells.databases[0], cells.databases[1]
    as_reader = [make_conninfo(url, options="-c role=pg_read_all_data") for url in (zero, one)]
    for why, urls in {
        "Postgres can't be reached": {0: zero, 1: "postgresql://127.0.0.1:1/rides"},
        "CELL_1_DATABASE_URL is not set: which database has cell 1": {0: zero},
        "CELL=0 is refused: the database is cell 1": {0: one, 1: zero},
        "CELL_0_DATABASE_URL's role does not own idempotency_keys": {0: as_reader[0], 1: one},
        "CELL_1_DATABASE_URL's role does not own idempotency_keys": {0: zero, 1: as_reader[1]},
    }.items():
        with pytest.raises(Unavailable, match=why):
            move({"00"}, int(1 in urls), cells.map, cells.router, urls)
    assert cells.takers("k") == [0, 1]
