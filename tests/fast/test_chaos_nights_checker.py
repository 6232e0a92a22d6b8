"""What chaos' checker finds in the nightly job's runs: each mistake made on purpose."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest

from lab.chaos.checker import check
from lab.chaos.drifts import OUTCOME, Final
from lab.chaos.evidence import Evidence
from lab.chaos.night_report import Compared, Some, Tally
from lab.chaos.nights_evidence import (
    AGREED,
    COULD_NOT_RUN,
    DRIFTED,
    FAILED,
    KILLED,
    Night,
    NightsEvidence,
    Reset,
)
from lab.chaos.restore import Restore
from tests.support.evidence import undisturbed
from tests.support.nights import ALL, OF_OUTCOME, look, night, nights, report


def evidence(found: NightsEvidence) -> Evidence:
    """Two rides; the outcome of the first was deleted, and it was delivered once more."""
    sound = undisturbed()
    assert sound.counts
    sound.counts.delivered += 1
    sound.counts.resets_asked = len(found.resets)
    sound.nights = found
    return sound


def first(found: NightsEvidence) -> Night:
    return found.nights[0]


def last(found: NightsEvidence) -> Night:
    return found.nights[-1]


def believe_all(found: NightsEvidence) -> None:
    """As a job does that always agrees."""
    first(found).report, first(found).end = report(), AGREED


def say_nothing_of_what_it_lists(found: NightsEvidence) -> None:
    said = first(found).report
    assert said
    said.agrees, first(found).end = True, AGREED


def end_as_if_it_agreed(found: NightsEvidence) -> None:
    first(found).end = AGREED


def find_the_same_again(found: NightsEvidence) -> None:
    last(found).report, last(found).end = report(wrong=True), DRIFTED


def find_it_too_early(found: NightsEvidence) -> None:
    found.nights.insert(0, night(0, 5.5, found.looks[0], look(9), wrong=True))
    found.nights[0].ended = 8


def tell_another_drift(found: NightsEvidence) -> None:
    said = first(found).report
    assert said
    said.consumers = [Compared("c0", Decimal("0.002"), stray=False, wrong=True)]


def call_it_stray(found: NightsEvidence) -> None:
    said = first(found).report
    assert said
    said.consumers[0].stray = True


def tell_another_minute(found: NightsEvidence) -> None:
    said = first(found).report
    assert said
    assert said.rollup
    said.rollup.wrong[0].rolled_up = Tally(2, Decimal("3.027"))


def miss_another_outcome(found: NightsEvidence) -> None:
    said = first(found).report
    assert said
    assert said.receipts
    said.receipts.missing = Some(2, [1, 2])


def count_another_outcome(found: NightsEvidence) -> None:
    said = first(found).report
    assert said
    assert said.receipts
    said.receipts.missing = Some(2, [1])


def find_a_strange_outcome(found: NightsEvidence) -> None:
    said = first(found).report
    assert said
    assert said.receipts
    said.receipts.strange = Some(1, [7])


def find_a_record_that_was_sent(found: NightsEvidence) -> None:
    said = first(found).report
    assert said
    assert said.outbox
    said.outbox.sent = Some(1, [7])


def call_the_warehouse_wrong(found: NightsEvidence) -> None:
    said = first(found).report
    assert said
    said.mismatches.append({"after": 0, "upto": 2})


def call_the_warehouse_broken(found: NightsEvidence) -> None:
    said = first(found).report
    assert said
    said.notes.append("The warehouse is broken (run 3): it is rebuilt from the first ride.")


def leave_a_warehouse_that_nobody_can_read(found: NightsEvidence) -> None:
    first(found).report, first(found).end = None, COULD_NOT_RUN
    first(found).said = "not reconciled: the warehouse can't be read (no such file)"


def compare_no_minutes(found: NightsEvidence) -> None:
    said = last(found).report
    assert said
    said.rollup = None


def fail(found: NightsEvidence) -> None:
    first(found).report, first(found).end = None, FAILED
    first(found).said = "Traceback"


def write_nothing(found: NightsEvidence) -> None:
    first(found).report = None


def repair_nothing(found: NightsEvidence) -> None:
    found.final[0] = found.final[0]._replace(is_there=True)


def end_with_a_drift(found: NightsEvidence) -> None:
    find_the_same_again(found)
    found.looks[3:] = [look(40, ALL), look(51, ALL)]


def not_run_at_last(found: NightsEvidence) -> None:
    last(found).report, last(found).end = None, COULD_NOT_RUN
    last(found).said = "not reconciled: no room"


def reset_what_was_right(found: NightsEvidence) -> None:
    found.resets.append(Reset("c1", Decimal("0.001"), frozen_at=2))


def reset_by_another_drift(found: NightsEvidence) -> None:
    found.resets[0] = found.resets[0]._replace(drift=Decimal("-1.009"))


def reset_before_the_drift(found: NightsEvidence) -> None:
    found.resets[0] = found.resets[0]._replace(frozen_at=0)


def reset_after_the_repair(found: NightsEvidence) -> None:
    found.resets.append(Reset("c0", Decimal("0.001"), frozen_at=3))


def lose_the_warehouse(found: NightsEvidence) -> None:
    found.table, found.unreadable = {}, "no such table"


def lose_a_ride_of_the_warehouse(found: NightsEvidence) -> None:
    del found.table[1]


def keep_a_ride_of_another_past(found: NightsEvidence) -> None:
    found.table[3] = Decimal(1)


def change_a_ride_of_the_warehouse(found: NightsEvidence) -> None:
    found.table[1] = Decimal("1.008")


def read_a_ride_twice(found: NightsEvidence) -> None:
    found.repeated.append(2)


@pytest.mark.parametrize(
    ("breakage", "expected"),
    [
        (believe_all, "night-1 missed the drift of the total c0"),
        (believe_all, "night-1 missed the drift of the minute 2026-11-22T12:01:00Z"),
        (believe_all, "night-1 missed the drift of the outcome 1"),
        (say_nothing_of_what_it_lists, "night-1 says that it agrees, and calls something wrong"),
        (end_as_if_it_agreed, "night-1 does not agree, and ends as one that agreed"),
        (find_the_same_again, "night-2 called the total of c0 (+0.001 m) wrong"),
        (find_the_same_again, "night-2 called the minute 12:01"),
        (find_the_same_again, "night-2 called missing outcomes of the rides [1] wrong"),
        (find_it_too_early, "night-0 called the total of c0 (+0.001 m) wrong"),
        (tell_another_drift, "night-1 called the total of c0 (+0.002 m) wrong"),
        (tell_another_drift, "night-1 missed the drift of the total c0"),
        (call_it_stray, "night-1 called the total of c0 (+0.001 m, stray) wrong"),
        (tell_another_minute, "night-1 called the minute 12:01"),
        (miss_another_outcome, "night-1 called missing outcomes of the rides [2] wrong"),
        (count_another_outcome, "night-1 called 2 missing outcomes, of 1 wrong"),
        (find_a_strange_outcome, "night-1 called outcomes without rides: [7] wrong"),
        (find_a_record_that_was_sent, "night-1 called records in the outbox (sent): [7] wrong"),
        (call_the_warehouse_wrong, "night-1 called the warehouse of the rides 0 to 2 wrong"),
        (call_the_warehouse_broken, "night-1 said: The warehouse is broken"),
        (
            leave_a_warehouse_that_nobody_can_read,
            "night-1 could not run: not reconciled: the wareh",
        ),
        (compare_no_minutes, "night-2 has not compared everything"),
        (fail, "night-1 failed: Traceback"),
        (write_nothing, "night-1 wrote no result"),
        (repair_nothing, "the drift of the total c0 was never repaired"),
        (end_with_a_drift, "night-2, after everything was repaired, found something wrong"),
        (not_run_at_last, "night-2, after all faults, could not run: not reconciled: no room"),
        (reset_what_was_right, "a reset of c1, for +0.001 m at ride 2, and nobody had made that"),
        (reset_by_another_drift, "a reset of c0, for -1.009 m at ride 1, and nobody had made that"),
        (reset_before_the_drift, "a reset of c0, for +0.001 m at ride 0, and nobody had made that"),
        (reset_after_the_repair, "a reset of c0, for +0.001 m at ride 3, and nobody had made that"),
        (lose_the_warehouse, "the warehouse can't be read: no such table"),
        (lose_a_ride_of_the_warehouse, "ride 1 is in Postgres alone"),
        (keep_a_ride_of_another_past, "ride 3 is in the warehouse alone"),
        (change_a_ride_of_the_warehouse, "ride 1 is of 1.009 m, but of 1.008 m in the warehouse"),
        (read_a_ride_twice, "ride 2 is in the warehouse more than once"),
    ],
)
def test_each_mistake_is_found(breakage: Callable[[NightsEvidence], None], expected: str) -> None:
    breakage(found := nights())
    assert expected in "\n".join(check(evidence(found)))


def nothing(found: NightsEvidence) -> None:
    """Both nights are right as they are."""


def begin_before_the_drifts(found: NightsEvidence) -> None:
    """It may have frozen everything before they were made."""
    believe_all(found)
    first(found).before, first(found).began = found.looks[0], 6


def find_what_was_made_meanwhile(found: NightsEvidence) -> None:
    first(found).before, first(found).began = found.looks[0], 6


def repair_it_meanwhile(found: NightsEvidence) -> None:
    """By the reset of a run that was killed after its commit."""
    believe_all(found)
    first(found).after = found.looks[2] = look(31)


def restore_meanwhile(found: NightsEvidence) -> None:
    """It may have frozen what was restored: without the drifts, which were made again."""
    believe_all(found)


def bring_it_back(found: NightsEvidence) -> None:
    """By a restore after the look that found all repaired, before the run froze anything."""
    find_the_same_again(found)
    found.last.clear()


def not_be_due(found: NightsEvidence) -> None:
    """A minute with a ride that was yet to come, for example."""
    believe_all(found)
    found.nights[0].after = found.looks[2] = found.looks[2]._replace(due=frozenset())


def lose_sight_of_postgres(found: NightsEvidence) -> None:
    believe_all(found)
    first(found).before = None


def be_killed(found: NightsEvidence) -> None:
    first(found).report, first(found).end = None, KILLED


def lose_the_answer_to_the_commit(found: NightsEvidence) -> None:
    """The drift was there for a while, and a restore has undone it: no look has seen it."""
    found.looks[:3] = [look(5)]
    first(found).before = first(found).after = None
    found.final.clear()
    found.resets.clear()


def have_no_room(found: NightsEvidence) -> None:
    leave_a_warehouse_that_nobody_can_read(found)
    first(found).said = "not reconciled: the warehouse can't be read (No space left on device)"


def be_asked_for_twice(found: NightsEvidence) -> None:
    """The second run froze the total before the first one's reset was applied."""
    found.resets[:0] = [Reset("c0", Decimal("0.001"), frozen_at=2)]


def drift_again(found: NightsEvidence) -> None:
    found.final.append(Final("total", "c0", "1", 5))
    found.resets.append(Reset("c0", Decimal("0.001"), frozen_at=5))


def be_of_a_lost_past(found: NightsEvidence) -> None:
    said = last(found).report
    assert said
    said.notes.append("The warehouse has rides of a lost past: it is rebuilt from the first ride.")


@pytest.mark.parametrize(
    ("change", "restores"),
    [
        (nothing, []),
        (begin_before_the_drifts, []),
        (find_what_was_made_meanwhile, []),
        (repair_it_meanwhile, []),
        (restore_meanwhile, [Restore(15, 25)]),
        (bring_it_back, [Restore(15, 41)]),
        (not_be_due, []),
        (lose_sight_of_postgres, []),
        (be_killed, []),
        (have_no_room, []),
        (be_asked_for_twice, []),
        (drift_again, []),
        (be_of_a_lost_past, []),
    ],
)
def test_what_may_be_is_allowed(
    change: Callable[[NightsEvidence], None], restores: list[Restore]
) -> None:
    change(found := nights())
    allowed = evidence(found)
    allowed.restores = restores
    assert check(allowed) == []


@pytest.mark.parametrize(
    ("counted", "expected"),
    [
        (3, None),
        (2, "night-1 counted 2 missing outcomes, of 3"),
        (1, "night-1 missed the drift of the outcome 2"),
    ],
)
def test_of_many_outcomes_few_are_named_and_all_are_counted(
    counted: int, expected: str | None
) -> None:
    found = nights()
    more = [replace(OF_OUTCOME, token=f"o{ride}", victim=f"{ride}") for ride in (2, 3)]
    found.made += more
    found.final += [Final(OUTCOME, drift.victim, "delivered") for drift in more]
    tokens = frozenset(drift.token for drift in more)
    for number in (1, 2):
        seen = found.looks[number]
        found.looks[number] = seen._replace(there=seen.there | tokens, due=seen.due | tokens)
    found.nights[0].before, found.nights[0].after = found.looks[1:3]
    said = found.nights[0].report
    assert said
    assert said.receipts
    said.receipts.missing = Some(counted, [1])
    findings = [each for each in check(evidence(found)) if "outcome" in each]
    assert findings == [] if expected is None else expected in findings


def test_a_drift_that_no_look_has_seen_may_be_found() -> None:
    lose_the_answer_to_the_commit(found := nights())
    allowed = evidence(found)
    assert allowed.counts
    allowed.counts.delivered -= 1
    assert check(allowed) == []


def test_a_restore_before_the_looks_excuses_nothing() -> None:
    for breakage in (believe_all, find_the_same_again):
        breakage(found := nights())
        wrong = evidence(found)
        wrong.restores = [Restore(1, 4)]
        assert check(wrong)


def test_without_the_job_no_reset_is_asked_for() -> None:
    wrong = undisturbed()
    assert wrong.counts
    wrong.counts.resets_asked = 1
    assert check(wrong) == ["the nightly job has asked for 1 resets"]


def test_a_receipt_that_was_decided_once_more_must_be_counted_so() -> None:
    wrong = replace(evidence(nights()), nights=None)
    assert "workers count 3 receipts delivered of 2" in check(wrong)
    wrong = evidence(nights())
    assert wrong.counts
    wrong.counts.delivered -= 1
    assert "workers count 2 receipts delivered of 3" in check(wrong)
