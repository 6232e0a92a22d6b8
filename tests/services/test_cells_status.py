"""`python -m cells.status`: all cells in one table, as their live pages tell it."""

import asyncio
import socket
from dataclasses import replace
from decimal import Decimal

import pytest

from cells import status
from lab.ports import free_ports
from rocket_rides.cells import CELL_SIZE
from tests.support.facts import A_TOTAL, WELL, facts
from tests.support.looks import first_to_tell
from tests.support.page import serving
from tests.support.world import World, eventually
from unified_log.words import DASH
from watch.facts import Agreement, Facts


def run(world: World, *urls: str) -> tuple[int, str]:
    """The exit status, and what was said."""
    code, said = first_to_tell(lambda: world.service("cells.status", *urls))
    assert "Traceback" not in said
    return code, said


def of_cell_2() -> Facts:
    """All is well, its one total is as long as they get, and somebody else's reader is behind."""
    assert WELL.database
    rides = replace(WELL.database.rides, last_sent=2 * CELL_SIZE, taken=5)
    guest = replace(A_TOTAL, name="guest", kind="outside", processes=None, seconds_behind=99.0)
    return facts(
        rides=rides,
        agreement=Agreement(5, {"consumer0": Decimal(10**30) / 1000}),
        readers=(*WELL.database.readers, guest),
    )


def test_all_cells_are_in_one_table_and_one_that_is_away_is_named(world: World) -> None:
    away = f"http://127.0.0.1:{free_ports()}/"
    with serving() as one, serving(of_cell_2) as other:
        code, said = run(world, one.url, f"{other.url}/", away)
        well = run(world, one.url)
        same = run(world, one.url, other.url, f"{one.url}/")
    assert same == (2, "two of these pages are the same cell's: give each cell's page once\n")
    assert code == 2
    _, *rows, _, wrong, _ = said.splitlines()
    assert [row.split() for row in rows] == [
        ["0", "well", "12,345", "6,344,236.123", "0.0", "s", f"{one.url}/"],
        ["2", "well", "5", f"{10**27:,}.000", "0.0", "s", f"{other.url}/"],
        [DASH, "away", DASH, DASH, DASH, away],
        ["2", "of", "3", f"{10**27 + 6_344_236:,}.123"],
    ]
    assert wrong.startswith(f"NOT WELL: {away}: its page is away: Cannot connect")
    assert (well[0], well[1].endswith("\n\nAll is well.\n\n")) == (0, True)


def test_a_page_that_hangs_or_is_another_is_away_and_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(status, "TIME", 0.5)

    def ask() -> tuple[status.Told, status.Told] | None:
        """Again, if this machine stood still for so long that nobody answered in time."""
        hangs, *others = asyncio.run(status.ask(urls))
        assert hangs.wrong == [late]
        other, well = others
        return None if [late] in (other.wrong, well.wrong) else (other, well)

    late = "its page is away: it does not answer"
    with serving() as one, socket.create_server(("127.0.0.1", 0)) as silent:
        urls = [f"http://127.0.0.1:{silent.getsockname()[1]}", f"{one.url}/healthz", one.url]
        other, well = eventually(ask, "answers beside a page that hangs")
    assert other.wrong[0].startswith("its page is away: 404")
    assert (well.facts, well.wrong) == (WELL, [])


def test_a_page_is_named_by_a_url(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^2$"):
        status.parse(["127.0.0.1:8001"])
    said = capsys.readouterr().err
    assert said == (
        "python -m cells.status: argument URL: invalid http value: '127.0.0.1:8001';"
        " --help explains\n"
    )
