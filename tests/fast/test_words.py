"""Numbers and names in words, wherever they are shown; and the report's verdict."""

from decimal import Decimal
from pathlib import Path

import pytest

from analytics.report.sentences import verdict
from analytics.result import Compared, Result
from rocket_rides.words import command, metres, signed
from tests.support.results import (
    CHECKED,
    DRIFTED,
    EMPTY,
    FILES_CHANGED,
    MISMATCHED,
    RIDES_CHANGED,
    RIGHT,
    STRAY,
    consumer,
    run,
)
from unified_log.words import age, aligned, count, number, plain, printable

DIGITS = Decimal("12345678901234567890123456789012345.678")


def test_a_distance_is_written_with_all_its_digits() -> None:
    assert metres(DIGITS) == "12,345,678,901,234,567,890,123,456,789,012,345.678"
    assert metres(Decimal(1234)) == "1,234.000"


@pytest.mark.parametrize(
    ("drift", "written"),
    [("0.001", "+0.001"), ("-1234.5", "\N{MINUS SIGN}1,234.500"), ("0.000", "0.000")],
)
def test_a_drift_has_its_sign_and_none_has_none(drift: str, written: str) -> None:
    assert signed(Decimal(drift)) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [(0, "0 rides"), (1, "1 ride"), (-1, "\N{MINUS SIGN}1 ride"), (2000, "2,000 rides")],
)
def test_one_is_no_plural(value: int, written: str) -> None:
    assert count(value, "ride") == written


def test_what_was_counted_up_to_a_limit_says_that_there_may_be_more() -> None:
    told = [number(value, 10_000) for value in (None, 9_999, 10_000)]
    assert told == ["\N{EN DASH}", "9,999", "10,000+"]
    assert count(10_000, "entry", 10_000) == "10,000+ entries"


def test_ages_are_short() -> None:
    ages = [age(seconds) for seconds in (-1, 0.04, 9.96, 99.6, 3600, 86_400, 500_000)]
    assert [plain(each) for each in ages] == [
        "0.0 s",
        "0.0 s",
        "10 s",
        "2 min",
        "60 min",
        "24 h",
        "6 d",
    ]


def test_a_terminal_is_given_what_a_person_can_type() -> None:
    assert plain(f"{age(3)}, {signed(Decimal(-1))} m") == "3.0 s, -1.000 m"


def test_columns_come_closer_where_a_line_would_be_too_long() -> None:
    rows = [("a", "12"), ("bc", "3")]
    assert list(aligned(rows, "<>")) == ["a   12", "bc   3"]
    assert list(aligned(rows, "<>", width=5)) == ["a  12", "bc  3"]


def test_a_name_is_left_as_it_is_unless_it_could_move_a_cursor() -> None:
    assert printable("größer 🚀") == "größer 🚀"
    assert printable("a\x1b[2Jb\n") == "a\\x1b[2Jb\\n"


def repaired(*wrong: Compared) -> Result:
    return run(*wrong, resets=[one.name for one in wrong])


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (RIGHT, "All totals agree."),
        (EMPTY, "There is no consumer to compare."),
        (DRIFTED, "1 of 2 consumers was wrong and will be reset."),
        (repaired(consumer(0, "1"), consumer(1, "2")), "2 of 2 consumers were wrong"),
        (repaired(consumer(0, "1")), "The only consumer was wrong and will be reset."),
        (CHECKED, "1 of 2 consumers is wrong; nothing was repaired (--check)."),
        (STRAY, "1 of 2 consumers is wrong; none will be reset."),
        (
            run(consumer(0, "1"), consumer(1, stray=True), resets=["consumer0"]),
            "2 of 2 consumers are wrong; 1 of them will be reset.",
        ),
        (MISMATCHED, "1 finding is held until somebody decides; all totals agree."),
        (
            run(consumer(0), findings=[FILES_CHANGED], published=True),
            "The warehouse had been changed, and was read again; all totals agree.",
        ),
        (
            run(consumer(0), findings=[FILES_CHANGED], repairing=False),
            "The warehouse had been changed, and is to be read again; all totals agree.",
        ),
        (
            run(consumer(0, "1"), findings=[RIDES_CHANGED, RIDES_CHANGED, FILES_CHANGED]),
            "2 findings are held until somebody decides; the warehouse had been changed, and is to"
            " be read again; the only consumer is wrong; none will be reset.",
        ),
    ],
)
def test_the_verdict_is_one_sentence(result: Result, said: str) -> None:
    assert said in verdict(result)
    assert verdict(result).find(".") == len(verdict(result)) - 1


def test_a_command_is_one_for_the_place_where_it_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.executable", str(programs / "python"))
    (tmp_path / ".env").touch()
    assert command("migrations") == ".venv/bin/python -m migrations"  # there is no honcho
    (programs / "honcho").touch()
    assert command("migrations") == ".venv/bin/honcho run .venv/bin/python -m migrations"
    (tmp_path / ".env").unlink()
    monkeypatch.chdir(programs.parent)
    assert command("migrations") == "bin/python -m migrations"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert command("migrations") == f"{programs}/python -m migrations"
