"""What a consumer may be called, and what it says of its rounds."""

import argparse
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from unified_log.log import START
from unified_log.readers.checkpoint import Place
from unified_log.readers.committed import Ignored
from unified_log.readers.gaps import Gap, Healed
from unified_log.readers.handler import Handler
from unified_log.readers.report import Report
from unified_log.readers.round import Round
from unified_log.readers.running import consumer_name
from unified_log.terms import NO_TERM
from unified_log.tracing import Trace


class Plain(Handler):
    take = None  # type: ignore[assignment]


def standing(began: Place) -> Any:
    """A reader that began there."""
    handler = Plain(None, "me")  # type: ignore[arg-type]
    return SimpleNamespace(handler=handler, began=began, at=SimpleNamespace(position=480))


@pytest.mark.parametrize("name", ["", " ", "x" * 65, "a\nb"])
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="a consumer's name has"):
        consumer_name(name)


@pytest.mark.parametrize("name", ["x" * 64, "Ünïcode 'quoted\" name", "-- drop"])
def test_any_other_name_will_do(name: str) -> None:
    assert consumer_name(name) == name


def test_ordinary_crashes_do_not_silence_the_warning_about_a_stranger(
    caplog: pytest.LogCaptureFixture,
) -> None:
    report = Report("me")
    for number in range(1000):
        report.entries(Round(ignored=Ignored(uncommitted=Counter({b"%d" % number: 1}))))
    caplog.clear()
    for _ in range(3):
        stranger = Ignored(foreign=Counter({b"stranger": 5}), uncommitted=Counter({NO_TERM: 7}))
        report.entries(Round(ignored=stranger))
    first, second = caplog.messages
    assert first.startswith("me skipped 5 entries from another database")
    assert second.startswith("me skipped 7 entries without a term, as versions before terms")


def test_the_line_about_a_batch_names_its_trace(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    reader = standing(Place("3-0", 1))
    trace = Trace("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    Report("me")(Round(records=["a", "b"], traces={2: trace}), reader)
    [line] = caplog.records
    assert line.__dict__["trace_id"] == trace.id
    assert line.message == "2 records up to 480"  # no state: the handler shows none


def test_who_begins_catches_up_and_who_has_lost_records_heals_a_gap(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Also in pieces, and with a new reader in the middle; and once it is there, never again."""
    caplog.set_level("INFO")
    report = Report("me")
    first, second = standing(Place(START, 0)), standing(Place(START, 4))

    def healed(reader: Any, *pieces: tuple[int, int]) -> None:
        report(Round(healed=[Healed(Gap(*piece), 1) for piece in pieces]), reader)

    healed(first, (0, 2), (2, 4))
    healed(second, (4, 6), (7, 8))
    report(Round(records=["a"]), second)
    healed(second, (8, 9))
    healed(standing(Place("9-0", 9)), (9, 10))
    told = [(line.levelname, line.message) for line in caplog.records if "position" in line.message]
    begins = "me caught up from the tables: 1 record, from position"
    lost = "me healed a gap in the log: 1 record, from position"
    assert told == [
        ("INFO", f"{begins} 1 to 2"),
        ("INFO", f"{begins} 3 to 4"),
        ("INFO", f"{begins} 5 to 6"),
        ("WARNING", f"{lost} 8 to 8"),
        ("WARNING", f"{lost} 9 to 9"),
        ("WARNING", f"{lost} 10 to 10"),
    ]
