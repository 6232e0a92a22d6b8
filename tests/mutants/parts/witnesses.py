"""Mutants of whom a run asks, where it looks, and of what must not be forgotten meanwhile."""

from functools import partial

from tests.mutants.mutant import Mutant

FORGOTTEN = (
    "analytics/test_ledger_attacked.py::"
    "test_the_ledger_of_a_block_on_which_nobody_agrees_takes_no_new_rides"
)
FRESH = "analytics/test_fresh_rides.py::"
MINUTES = "analytics/test_minutes_held.py::"
REPAIR = "analytics/test_ownership.py::"
ALTERED = REPAIR + "test_a_ride_that_was_altered_before_a_repair_is_held_as_ever"
TAKES_IN = REPAIR + "test_a_warehouse_takes_in_the_rides_of_a_repair"
judgement = partial(Mutant, file="analytics/judgement.py")
minutes = partial(Mutant, file="analytics/judged_minutes.py")

MUTANTS = [
    judgement(
        "new rides are added to what nobody agrees on",
        "            or self._would_forget\n",
        "",
        tests=FORGOTTEN,
    ),
    judgement(
        "a first warehouse is built of rides that all contradict",
        "and known < max(",
        "and 0 < known < max(",
        tests=FRESH + "test_no_warehouse_is_built_of_rides_that_all_contradict",
    ),
    Mutant(
        "the first ratings are in the ledger though all contradict",
        "if judgement.approved or not verdict:",
        "if judgement.approved or not verdict or not rated:",
        "analytics/judged_ratings.py",
        "analytics/test_ratings_changed.py::"
        "test_ratings_that_were_altered_before_any_run_agree_once_they_are_put_back",
    ),
    minutes(
        "a ride is moved to a day whose rides are held",
        "is_gone or waits or",
        "is_gone or",
        tests=MINUTES + "test_nor_does_one_that_was_moved_to_a_day_with_rides_that_are_held",
    ),
    minutes(
        "a ride is moved to a minute that is not compared yet",
        "_cancel([*wrong, *verdict.later])",
        "_cancel(wrong)",
        tests=MINUTES
        + "test_a_ride_that_was_moved_to_a_minute_that_is_not_compared_yet_changes_none",
    ),
    Mutant(
        "of disputed rides, chance says which a run finds",
        " or any(map(self._is_disputed, self.evidence.looks))",
        "",
        "analytics/case.py",
        "analytics/test_approvals.py::"
        "test_an_approval_is_for_what_the_next_run_finds_wherever_chance_has_it_look",
    ),
    Mutant(
        "of changed ratings, chance says which a run finds",
        "if changed and len(again_) < len(full):",
        "if [] and len(again_) < len(full):",
        "analytics/proofs/ratings.py",
        "analytics/test_ratings_changed.py::"
        "test_an_approval_is_for_all_ratings_that_were_changed_wherever_chance_has_a_run_look",
    ),
    Mutant(
        "after a repair, nobody knows what the rides were",
        "bool(reason) and _was_repaired(",
        "not reason and _was_repaired(",
        "analytics/evidence.py",
        ALTERED,
    ),
    Mutant(
        "a restore to before the newest run passes for a repair",
        "if committed is None or committed.ledger not in ledgers:",
        "if committed is None:",
        "analytics/evidence.py",
        REPAIR + "test_a_repair_after_a_restore_makes_no_witness_of_a_warehouse_that_is_past_it",
    ),
    Mutant(
        "of rides that minutes show, a run finds the others by chance",
        "            self._look_at_unseen([(0, base.position)])\n",
        "            pass\n",
        "analytics/case.py",
        "analytics/test_approvals.py::"
        "test_an_approval_is_for_all_rides_that_were_altered_though_but_a_minute_shows_one",
    ),
    minutes(
        "a ride is moved to a minute that is set aside",
        "unseen = outside or verdict.set_aside",
        "unseen = outside",
        tests=MINUTES + "test_nor_does_one_that_was_moved_to_a_minute_that_is_set_aside",
    ),
    Mutant(
        "rows that the log has passed are missed as records for ever",
        "[max(0, gone - sent_before)]",
        "[0]",
        "unified_log/repair.py",
        "services/test_repair.py::"
        "test_only_rows_that_the_log_has_passed_are_read_anew_and_they_count_as_sent",
    ),
    Mutant(
        "after a repair, a run goes on where the last one ended",
        "full = full or repaired",
        "full = full",
        "analytics/evidence.py",
        TAKES_IN,
    ),
    judgement(
        "rides that a repair has counted are held",
        "        voted |= dict.fromkeys(self._stranded, Right.POSTGRES)\n",
        "",
        tests=TAKES_IN,
    ),
    Mutant(
        "beside rides that a repair has counted, others may be altered",
        "self.rides > 0 and self.gone == -self.rides",
        "self.rides > 0 and self.gone < 0",
        "analytics/rows.py",
        ALTERED,
    ),
]
