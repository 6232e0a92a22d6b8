"""Mutants of what a run takes in: new rides and ratings, minutes, what is read twice, approvals."""

from functools import partial

from tests.mutants.mutant import Mutant

FRESH = "analytics/test_fresh_rides.py::"
RATINGS = "analytics/test_ratings_changed.py::"
MINUTES = "analytics/test_minutes_held.py::"
LOST = (
    "analytics/test_warehouse_lost.py::"
    "test_rides_that_are_held_stay_so_without_a_warehouse_until_they_are_approved"
)
PUT_BACK = (
    FRESH + "test_new_rides_that_no_total_has_counted_so_are_no_witnesses_once_they_are_put_back"
)
APPROVED = (
    "analytics/test_approvals.py::"
    "test_only_the_last_run_is_approved_if_it_holds_something_and_for_a_reason_and_then_all_agrees"
)
JOINED = (
    "analytics/test_approvals.py::"
    "test_a_ride_that_was_added_in_a_block_without_any_is_proven_by_itself_once_approved"
)
judgement = partial(Mutant, file="analytics/judgement.py")
minutes = partial(Mutant, file="analytics/judged_minutes.py")
judged_ratings = partial(Mutant, file="analytics/judged_ratings.py")
evidence = partial(Mutant, file="analytics/evidence.py")
case = partial(Mutant, file="analytics/case.py")
ratings = partial(Mutant, file="analytics/proofs/ratings.py")
denied = partial(
    Mutant, file="analytics/votes.py",
    tests="fast/test_votes.py::"
    "test_rides_after_20_are_denied_where_somebody_has_counted_others",
)  # fmt: skip
approve = partial(Mutant, file="analytics/approve.py", tests=APPROVED)

MUTANTS = [
    # New rides, and new ratings.
    judgement(
        "new rides that all contradict are published",
        "            or self._denies_new\n",
        "",
        tests=PUT_BACK,
    ),
    judgement(
        "new rides that all contradict can't be approved",
        "not self.approved\n            and known <",
        "known <",
        tests=PUT_BACK,
    ),
    denied(
        "who has counted no new ride contradicts them",
        " and each.position > upto for",
        " for",
    ),
    denied(
        "who has counted what there is not contradicts new rides",
        "each.wrong and not each.stray and",
        "each.wrong and",
    ),
    denied(
        "who recounts contradicts what is new",
        "each.wrong and not each.stray and",
        "each.differs and not each.stray and",
    ),
    judgement(
        "one total that is wrong contradicts what another has counted so",
        "votes.denied(self.compared, max(known, self.confirmed, self._counted_past(known)))",
        "votes.denied(self.compared, known)",
        tests=FRESH + "test_who_is_wrong_alone_keeps_no_ride_out_that_the_other_total_has_counted",
    ),
    judgement(
        "who holds out an old ride has counted no new one",
        "self.confirmed, self._counted_past(known))",
        "self.confirmed)",
        tests=FRESH + "test_who_is_wrong_alone_keeps_no_ride_out_that_the_other_total_has_counted",
    ),
    judgement(
        "who holds out a new ride has counted it",
        " and max(one.held_out, default=0) <= known",
        "",
        tests=FRESH + "test_nor_are_those_that_one_total_contradicts_and_the_other_has_not_counted",
    ),
    case(
        "new ratings that all contradict are in the ledger",
        "rated = self.known.ledger if denied else self.ratings",
        "rated = self.ratings",
        tests=RATINGS + "test_new_ratings_that_nobody_has_counted_so_are_not_in_the_ledger",
    ),
    ratings(
        "ratings between two blocks are not read",
        "known = _joined(base.ratings)",
        "known = base.ratings",
        tests=RATINGS + "test_a_rating_that_was_added_where_no_block_has_any_is_found_and_counted",
    ),
    judged_ratings(
        "a consumer recounts ratings that were changed",
        "doubted = bool(changed) or judgement.distrusts_postgres",
        "doubted = judgement.distrusts_postgres",
        tests=RATINGS
        + "test_a_star_that_was_altered_in_postgres_resets_nobody_until_that_is_approved",
    ),
    # What an earlier run has seen.
    judgement(
        "ratings are remembered without the ledger",
        '"ratings": known.ledger.position}',
        '"ratings": known.remembers}',
        tests=RATINGS + "test_without_the_ledger_no_run_remembers_ratings",
    ),
    Mutant(
        "a run that has died testifies to what the one before did",
        "run.note_ledger(committed.ledger, case.proven)",
        "run.note_ledger(committed.ledger, case.last.proven if case.last else {})",
        "analytics/job.py",
        FRESH + "test_no_run_remembers_rides_that_the_warehouse_has_lost",
    ),
    evidence(
        "what nobody can read any more is remembered",
        "return self.extent if self.is_witness or self.is_proven else 0",
        "return self.extent",
        tests="analytics/test_warehouse_lost.py::"
        "test_nobody_remembers_what_neither_the_files_nor_the_ledger_say",
    ),
    evidence(
        "a full run without the warehouse's log asks no ledger",
        "if committed is None and had_rides:",
        "if committed is None and had_rides and not full:",
        tests=LOST,
    ),
    judgement(
        "receipts of held rides are delivered without a warehouse",
        "return held or self.distrusts_postgres or bool(self.forgotten)",
        "return held or self.distrusts_postgres",
        tests=LOST,
    ),
    evidence(
        "a digest of several blocks is that of the last",
        "if not self.is_proven or self._is_one_of_several(number):",
        "if not self.is_proven:",
        tests=JOINED,
    ),
    evidence(
        "blocks that share a digest never get their own",
        "everything=any(block.is_several for block in ledger.blocks) or full)",
        "everything=full)",
        tests=JOINED,
    ),
    Mutant(
        "a look of tomorrow takes a block out of the rotation",
        "looked_at=min(each.looked_at, now))",
        "looked_at=each.looked_at)",
        "analytics/ledger.py",
        "fast/test_rotation.py::test_a_clock_that_was_ahead_takes_no_block_out_of_the_rotation",
    ),
    Mutant(
        "who left before a clock was put right is missed",
        " OR %(moment)s > clock_timestamp()",
        "",
        "analytics/readers.py",
        "services/test_readers_missing.py::"
        "test_a_reader_may_leave_after_a_run_whose_clock_was_ahead",
    ),
    # Minutes.
    minutes(
        "a minute of held rides waits for them in full runs alone",
        "    days = {day for look in judgement.held_looks for day in look.differ.days}\n",
        "    looks = judgement.held_looks if judgement.evidence.known.everything else []\n"
        "    days = {day for look in looks for day in look.differ.days}\n",
        tests=MINUTES + "test_a_minute_with_a_ride_that_is_held_is_not_computed_anew",
    ),
    minutes(
        "minutes are computed anew although the judge is suspect",
        "(verdict.upto <= judgement.confirmed and not judgement.is_suspect)",
        "verdict.upto <= judgement.confirmed",
        tests=MINUTES + "test_no_minute_is_computed_anew_where_all_totals_are_off_by_the_same",
    ),
    minutes(
        "a ride that was moved out of all times makes its minute wrong",
        "is_gone = unseen and any(_off(each).rides > 0 for each in wrong)",
        "is_gone = False",
        tests=MINUTES
        + "test_a_ride_whose_time_was_moved_before_any_run_has_read_it_changes_no_minute_"
        "unless_approved",
    ),
    minutes(
        "of too many minutes none cancel",
        "        if NOTHING in sums or looked_at > MOST_SUMS:\n            return True\n",
        "        if NOTHING in sums:\n            return True\n"
        "        if looked_at > MOST_SUMS:\n            return False\n",
        tests=MINUTES + "test_of_many_minutes_that_are_off_alike_not_all_sums_are_looked_at",
    ),
    # What is read twice must be the same.
    case(
        "what a full run reads twice may differ",
        "look.postgres_whole != self.rides.new.digests.get(look.number, NOTHING)",
        "look.number < 0",
        tests="analytics/test_warehouse.py::test_what_a_full_run_reads_twice_must_be_the_same",
    ),
    Mutant(
        "what has changed since all was compared is closed",
        "if cut.postgres != cut.warehouse:",
        "if False:",
        "analytics/closing.py",
        "analytics/test_closing.py::test_what_is_changed_between_two_looks_is_not_closed",
    ),
    # What a person approves.
    approve(
        "an approval may come during a run",
        "if one_row(connection.execute(ALONE, [Lock.RECONCILIATION])) != (True,):",
        "if False:",
    ),
    approve(
        "a byte that is no UTF-8 ends in a traceback",
        "(Unavailable, psycopg.Error, OSError, UnicodeError)",
        "(Unavailable, psycopg.Error, OSError)",
    ),
    Mutant(
        "an approval is for as many receipts as are missing by then",
        'f"{wrong.rides} {wrong.ids}", receipts',
        "str(wrong.ids), receipts",
        "analytics/findings.py",
        "fast/test_findings.py::"
        "test_receipts_that_are_missing_beside_those_that_are_named_are_another_finding",
    ),
]
