"""Who is missing, and since when, as several looks in a row tell."""

import time
from dataclasses import replace

import pytest

from tests.support.facts import A_TOTAL, facts
from watch.absence import LOOKS, Absence
from watch.facts import Database, Lead
from watch.naming import RECEIPTS, ROLLUP, STREAMER
from watch.problems import ABSENT, problems

UNSEEN = 5.0  # seconds between looks while nobody looks on


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


def missing(*names: str) -> Database:
    """Of the totals a, b and c, those of these names are at work in no process."""
    totals = (replace(A_TOTAL, name=name, processes=int(name not in names)) for name in "abc")
    database = facts(readers=tuple(totals)).database
    assert database
    return database


def absent(database: Database) -> dict[str, float]:
    return {who: seconds for who, seconds in database.absent.items() if seconds}


def test_looks_that_fall_into_different_restarts_are_no_absence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, looks = Clock(monkeypatch), Absence()
    for names in ("a", "a", "", "a", "ab", "b", "c"):
        noted = looks.noted(missing(*names))
        assert problems(facts(readers=noted.readers, absent=noted.absent)) == []
        clock.now += UNSEEN


def test_who_is_missing_in_every_look_is_absent_since_the_first_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, looks = Clock(monkeypatch), Absence()
    for _ in range(LOOKS):
        noted = looks.noted(missing("b"))
        clock.now += ABSENT
    assert absent(noted) == {"the total b": ABSENT * (LOOKS - 1)}
    assert [
        problem.kind for problem in problems(facts(readers=noted.readers, absent=noted.absent))
    ] == ["dead"]
    assert absent(looks.noted(missing())) == {}
    assert absent(looks.noted(missing("b"))) == {}


def test_leads_and_receipts_workers_can_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, looks, nobody = Clock(monkeypatch), Absence(), Lead(False, 0)
    there = missing()
    gone = replace(
        there,
        streamer=nobody,
        rollup=replace(there.rollup, lead=nobody),
        receipts=replace(there.receipts, workers=0, pending=1),
    )
    for _ in range(LOOKS):
        noted = looks.noted(gone)
        clock.now += 1
    assert absent(noted) == dict.fromkeys((STREAMER, ROLLUP, RECEIPTS), LOOKS - 1)


def test_an_outage_in_between_is_no_absence(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, looks = Clock(monkeypatch), Absence()
    for _ in range(LOOKS - 1):
        looks.noted(missing("a"))
    looks.forget()
    clock.now += 60
    assert absent(looks.noted(missing("a"))) == {}
