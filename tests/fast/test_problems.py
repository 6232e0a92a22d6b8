"""What is said to be not well, and in which words; and what merely waits for a person."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from rocket_rides.health import SILENCE
from rocket_rides.settings import PROJECT
from tests.support.facts import (
    A_TOTAL,
    MOMENT,
    WELL,
    absent,
    completed_run,
    facts,
    failed_run,
    finding,
    held_run,
)
from watch.facts import Agreement, Facts, Lead, Reader, Reconciliation, Rides, Server
from watch.findings import RUNS_LATE
from watch.problems import ABSENT, LATE, OTHERS_LATE, RECEIPTS_LATE, Problem, notices, problems

NOBODY, MILLIMETRE = Lead(False, 0), Decimal("0.001")
assert WELL.database
DATABASE = WELL.database
*_, ROLLUP = DATABASE.readers


def only(facts: Facts) -> Problem:
    [problem] = problems(facts)
    assert "\n" not in problem.what
    return problem


def run(drift: Decimal, *unrepaired: str) -> Reconciliation:
    return Reconciliation(7, WELL.at, 500, 500, Decimal(1), {"consumer0": drift}, unrepaired)


def test_a_fleet_at_work_is_well() -> None:
    assert problems(WELL) == []
    assert notices(WELL) == []


@pytest.mark.parametrize(
    "seen",
    [
        absent(
            facts(rides=Rides(0, 0, 0, 0, 0, 0, None), streamer=NOBODY, readers=(), agreement=None),
            ABSENT,
        ),
        facts(readers=(replace(A_TOTAL, kind="outside", processes=None, seconds_behind=None),)),
        facts(agreement=Agreement(521, {"consumer0": Decimal(1)}, ("consumer1",))),
    ],
    ids=["a fleet that has not begun", "a lag that can't be known", "a total too far behind"],
)
def test_what_is_no_problem(seen: Facts) -> None:
    assert problems(seen) == []


def test_a_redis_that_shows_too_little_is_noticed() -> None:
    assert "does not let this user" in notices(replace(WELL, log=None))[0]


def test_a_server_that_is_away_is_the_only_problem() -> None:
    """Nobody can be at work without it, so that is not said as well."""
    reader = replace(A_TOTAL, processes=0)
    missing = absent(facts(readers=(reader,), streamer=NOBODY), ABSENT)
    without_redis = replace(missing, redis=Server(False, "refused"), log=None)
    assert only(without_redis) == Problem("Redis can't be used: refused", "away")
    without_postgres = replace(WELL, postgres=Server(False, "refused"), database=None)
    assert only(without_postgres) == Problem("Postgres can't be used: refused", "away")


LATER = LATE + 1
BILLING = replace(A_TOTAL, kind="outside", name="billing", processes=None)


@pytest.mark.parametrize(
    ("reader", "what"),
    [
        (
            replace(A_TOTAL, records_behind=40, seconds_behind=LATER),
            "the total consumer0 is 40 records",
        ),
        (replace(ROLLUP, records_behind=1, seconds_behind=LATER), "the rollup is 1 record and 11"),
    ],
)
def test_a_reader_lags_when_its_oldest_ride_has_waited_too_long(reader: Reader, what: str) -> None:
    problem = only(facts(readers=(reader,)))
    assert problem.kind == "lags"
    assert what in problem.what
    assert problems(facts(readers=(replace(reader, seconds_behind=LATE),))) == []


def waiting(seconds: float, **changes: object) -> Facts:
    undelivered = replace(DATABASE.receipts, pending=40, oldest_undelivered_seconds=seconds)
    return facts(receipts=replace(undelivered, **changes), readers=())  # type: ignore[arg-type]


def test_receipts_may_wait_for_as_long_as_their_attempts_take() -> None:
    assert problems(waiting(RECEIPTS_LATE)) == []
    problem = only(waiting(RECEIPTS_LATE + 1))
    assert problem.kind == "lags"
    assert "40 receipts to deliver, the oldest for 30" in problem.what


def test_a_reader_elsewhere_that_is_late_is_noticed_and_makes_nothing_wrong() -> None:
    late = facts(readers=(*DATABASE.readers, replace(BILLING, seconds_behind=OTHERS_LATE + 1)))
    assert problems(late) == []
    [notice] = notices(late)
    assert "outside billing (60" in notice
    assert notices(facts(readers=(replace(BILLING, seconds_behind=OTHERS_LATE),))) == []


def test_a_record_that_stays_in_the_outbox_is_a_problem() -> None:
    def staged(seconds: float) -> Facts:
        return facts(rides=replace(DATABASE.rides, staged=3, oldest_staged_seconds=seconds))

    assert only(staged(LATE + 1)).kind == "lags"
    assert problems(staged(LATE)) == []


def test_who_is_missing_for_longer_than_a_restart_takes_is_dead() -> None:
    gone, leaderless = facts(readers=(replace(A_TOTAL, processes=0),)), facts(streamer=NOBODY)
    assert only(absent(gone, ABSENT)).kind == "dead"
    assert "consumer0" in only(absent(gone, ABSENT)).what
    assert problems(absent(gone, ABSENT - 1)) == []
    assert only(absent(leaderless, ABSENT)).kind == "dead"
    assert problems(absent(leaderless, ABSENT - 1)) == []


def test_what_to_do_about_a_total_that_is_not_at_work() -> None:
    gone = replace(A_TOTAL, processes=0)
    ended = only(absent(facts(readers=(gone,)), ABSENT)).what
    assert "start one" in ended
    assert "docs/production.md#remove-a-reader" in ended
    hangs = only(absent(facts(readers=(replace(gone, silent_processes=1),)), ABSENT)).what
    assert "start one" not in hangs
    assert "hangs, or was suspended" in hangs


def test_the_docs_say_after_which_time_what_is_a_problem() -> None:
    page = (PROJECT / "docs/watch.md").read_text()
    rows = [line.strip("| ").rpartition(" | ") for line in page.splitlines() if "|" in line]
    after = {what: when for what, _, when in rows}
    said = {
        "nobody is at work": f"{ABSENT:.0f} seconds",
        "a total, the rollup or another consumer lags": f"{LATE:.0f} seconds",
        "the oldest record in the outbox": f"{LATE:.0f} seconds",
        "the oldest receipt": f"{RECEIPTS_LATE / 60:.0f} minutes",
        "the last completed run of the reconciliation": f"{RUNS_LATE / 3600:.0f} hours",
    }
    found = {begins: [after[what] for what in after if what.startswith(begins)] for begins in said}
    assert found == {begins: [when] for begins, when in said.items()}
    assert f"been behind for {OTHERS_LATE / 60:.0f} minutes" in " ".join(page.split())
    assert f"silent for {SILENCE} seconds" in " ".join(page.split())


def test_whoever_has_work_and_is_missing_is_dead_though_no_reader_tells() -> None:
    """As without the rollup's checkpoint."""
    undelivered = waiting(1, workers=0)
    assert "nobody delivers receipts" in only(absent(undelivered, ABSENT)).what
    assert problems(absent(undelivered, ABSENT - 1)) == []
    idle = replace(DATABASE.receipts, workers=0)
    assert only(absent(facts(receipts=idle, readers=()), ABSENT)).kind == "dead"
    nobody = facts(rollup=replace(DATABASE.rollup, lead=NOBODY), readers=())
    assert "no rollup leads" in only(absent(nobody, ABSENT)).what
    assert problems(absent(nobody, ABSENT - 1)) == []


def test_of_many_only_a_few_are_named_and_the_others_counted() -> None:
    crowd = [replace(A_TOTAL, name=f"total{n}") for n in range(203)]
    lagging = problems(facts(readers=tuple(replace(each, seconds_behind=99.0) for each in crowd)))
    gone = facts(readers=tuple(replace(each, processes=0) for each in crowd))
    missing = problems(absent(gone, ABSENT))
    for found, kind in ((lagging, "lags"), (missing, "dead")):
        assert [problem.kind for problem in found] == [kind] * 4
        assert found[-1].what.startswith("200 more ")
    totals = {reader.name: Decimal(1) for reader in crowd} | {"total99": Decimal(2)}
    problem = only(facts(agreement=Agreement(520, totals)))
    assert "at position 520: total99 2.000 m, " in problem.what  # it differs from the others
    assert "and 200 more;" in problem.what
    assert len(problem.what) < 300
    strangers = (replace(BILLING, name=reader.name, seconds_behind=9e9) for reader in crowd)
    assert len(notices(facts(readers=tuple(strangers)))[0]) < 300


def test_a_total_that_was_deleted_is_dead() -> None:
    problem = only(facts(readers=(replace(A_TOTAL, total=None),)))
    assert (problem.kind, "lost its total" in problem.what) == ("dead", True)


def test_minutes_that_were_set_aside_say_how_they_are_tried_again() -> None:
    problem = only(facts(rollup=replace(DATABASE.rollup, minutes_set_aside=2)))
    assert problem.kind == "dead"
    assert "2 minutes" in problem.what
    assert "python -m consumers.rollup.set_aside" in problem.what


def test_a_millimetre_is_a_disagreement() -> None:
    kilometres = "12345678901234567890123456789012"
    ends = {"consumer0": "345.678", "consumer1": "345.679"}
    totals = {name: Decimal(kilometres + end) for name, end in ends.items()}
    problem = only(facts(agreement=Agreement(520, totals)))
    assert problem.kind == "disagrees"
    assert "at position 520" in problem.what
    assert "345.678 m" in problem.what
    assert "345.679 m" in problem.what


def test_drift_is_a_problem_until_it_is_repaired() -> None:
    problem = only(facts(reconciliations=(run(-MILLIMETRE, "consumer0"),)))
    assert problem.kind == "drift"
    assert "0.001 m" in problem.what
    assert problems(facts(reconciliations=(run(-MILLIMETRE),))) == []
    earlier = replace(run(-MILLIMETRE, "consumer0"), at=WELL.at - timedelta(days=1))
    assert problems(facts(reconciliations=(run(Decimal(0)), earlier))) == []


def test_what_a_run_holds_is_a_problem_with_the_way_out() -> None:
    problem = only(facts(completed_run=held_run(held=2)))
    assert problem.kind == "held"
    assert "run 7 of the reconciliation holds 2 findings until a person decides" in problem.what
    assert "Postgres has 3 other rides than the warehouse: 17, 18, 19" in problem.what
    assert "python -m analytics.approve 7 --reason ..." in problem.what
    approved = only(facts(completed_run=held_run(approved=True)))
    assert approved.kind == "held"
    assert "analytics.approve" not in approved.what
    assert "is approved: the next run acts" in approved.what


@pytest.mark.parametrize(("kind", "of"), [("reader_gone", "dead"), ("reader_behind", "lags")])
def test_a_reader_that_a_run_missed_is_a_problem(kind: str, of: str) -> None:
    about = "the ratings ratings0 has no state"
    missed = finding(kind, part="readers", held=False, about=about)
    run = completed_run(status="wrong", findings=(missed,), open={kind: 1})
    problem = only(facts(completed_run=run))
    assert problem.kind == of
    assert about in problem.what
    assert "make reconcile" in problem.what
    assert notices(facts(completed_run=run)) == []


def test_what_a_run_found_wrong_is_noticed_since_it_is_repaired() -> None:
    strange = finding("receipts_strange", held=False, about="1 receipt has no ride: 99")
    run = completed_run(status="wrong", findings=(strange,), open={"receipts_strange": 3})
    seen = facts(completed_run=run)
    assert problems(seen) == []
    [notice] = notices(seen)
    assert "found 3 things wrong: docs/reconcile.md" in notice
    assert notice.endswith("; found: 1 receipt has no ride: 99")


def test_a_night_without_a_completed_run_is_a_problem_and_one_that_failed_is_noticed() -> None:
    def ago(seconds: float) -> Facts:
        run = completed_run(at=MOMENT - timedelta(seconds=seconds))
        return facts(completed_run=run, failed_run=failed_run(), failed_runs=3)

    [notice] = notices(ago(RUNS_LATE))
    assert notice.startswith("3 runs of the reconciliation failed, the last 2")
    assert notice.endswith("ago: Spark is away")
    assert problems(ago(RUNS_LATE)) == []
    problem = only(ago(RUNS_LATE + 1))
    assert problem.kind == "lags"
    assert "make reconcile" in problem.what
    idle = replace(
        ago(RUNS_LATE * 2), database=replace(DATABASE, rides=Rides(0, 0, 0, 0, 0, 0, None))
    )
    assert problems(idle) == []


def test_where_no_run_was_ever_completed_the_oldest_ride_tells_whether_one_is_late() -> None:
    def first_ride(seconds: float) -> Facts:
        return facts(completed_run=None, oldest_ride_at=MOMENT - timedelta(seconds=seconds))

    assert problems(first_ride(RUNS_LATE)) == []
    problem = only(first_ride(RUNS_LATE + 1))
    assert problem.kind == "lags"
    assert problem.what.startswith("no run of the reconciliation was completed since the first")
    assert "make reconcile" in problem.what


def test_what_was_given_up_or_set_aside_waits_for_a_person_and_is_no_problem() -> None:
    waiting = replace(DATABASE.receipts, dead=3)
    seen = facts(receipts=waiting, malformed_entries={"total": 1, "receipts": 1})
    assert problems(seen) == []
    receipts, entries = notices(seen)
    assert receipts.startswith("3 receipts")
    assert "make dead-letters" in receipts
    assert entries.startswith("2 entries")


def test_no_name_breaks_a_line_or_reaches_a_terminal_raw() -> None:
    nasty = "a\x1b[2J\nb"
    seen = facts(
        readers=(replace(A_TOTAL, name=nasty, seconds_behind=99.0),),
        agreement=Agreement(1, {nasty: Decimal(1), "b": Decimal(2)}, (nasty,)),
        reconciliations=(replace(run(MILLIMETRE, nasty), drift={nasty: MILLIMETRE}),),
    )
    found = problems(seen)
    assert len(found) == 3
    findings = tuple(finding(kind, about=nasty) for kind in ("rides_changed", "reader_gone"))
    held = held_run(findings=findings, open={"rides_changed": 1, "reader_gone": 1})
    ran = facts(completed_run=held, failed_run=failed_run(reason=nasty))
    found += problems(ran)
    told = [problem.what for problem in found] + notices(ran)
    assert len(told) == 6
    assert all(what.replace("\xa0", " ").isprintable() for what in told)


def test_what_is_held_out_waits_for_a_person_and_a_recount_for_nobody() -> None:
    lacking = replace(A_TOTAL, held_out=3, dropped=2)
    recounting = replace(A_TOTAL, name="consumer1", recounts=True)
    seen = facts(readers=(lacking, recounting))
    assert problems(seen) == []
    held_out, recounts = notices(seen)
    assert "3 records held out by the total consumer0: make held-out" in held_out
    assert "the total consumer1 recounts" in recounts
    given_up = facts(readers=(replace(A_TOTAL, dropped=2),))
    assert notices(given_up) == []
    late = replace(recounting, seconds_behind=LATER, records_behind=7)
    assert only(facts(readers=(late,))).what.startswith("the total consumer1 recounts, and is 7")


def test_a_run_that_met_a_recount_found_nothing_wrong() -> None:
    seen = facts(completed_run=completed_run(status="agreed", open={"reader_recounts": 1}))
    assert (problems(seen), notices(seen)) == ([], [])
