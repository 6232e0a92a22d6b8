"""Mutants of the rollup: marks, generations, computed minutes, `complete_to`."""

from functools import partial

from tests.mutants.mutant import Mutant

DISASTERS = "services/test_rollup_disasters.py"
USUAL_FILE = "services/test_rollup.py"
USUAL = f"{USUAL_FILE} {DISASTERS}"
POISON = "services/test_rollup_poison.py"

dirty = partial(Mutant, file="consumers/rollup/dirty.py", tests=USUAL)
ick = partial(Mutant, file="consumers/rollup/ick.lua", tests=USUAL)
generation = partial(Mutant, file="consumers/rollup/generation.py", tests=USUAL)
lead = partial(Mutant, file="consumers/rollup/lead.py", tests=USUAL)
marker = partial(Mutant, file="consumers/rollup/marker.py", tests=USUAL)
reader = partial(Mutant, file="unified_log/readers/reader.py", tests=USUAL)
minutes = partial(Mutant, file="consumers/rollup/minutes.py", tests=USUAL)
indexer = partial(Mutant, file="consumers/rollup/indexer.py", tests=f"{USUAL} {POISON}")
set_aside = partial(Mutant, file="consumers/rollup/set_aside_minutes.py", tests=POISON)

MUTANTS = [
    dirty(
        "what is reserved and not computed is complete",
        'int(stats["total_min"]) if stats.get("total_size")',
        'int(stats["pset_min"]) if stats.get("pset_size")',
        tests=f"{USUAL_FILE}::test_no_ride_is_complete_that_is_reserved_and_not_computed",
    ),
    ick(
        "an Ick that lost a set passes",
        "(wrong or state() ~= expected)",
        "false",
        tests=f"{DISASTERS}::test_marks_that_redis_loses_are_missed_and_made_again",
    ),
    ick(
        "an older Ick with as many minutes passes",
        "local count = writes and call('GET', writes) or '0'",
        "local count = '0'",
        tests=f"{DISASTERS}::test_an_older_state_of_redis_that_comes_back_is_noticed",
    ),
    ick(
        "a commit takes what was marked meanwhile",
        "call('ZREM', cset, unpack(ARGV, i, min(i + LIMIT - 1, #ARGV)))\n  end\n",
        "call('ZREM', cset, unpack(ARGV, i, min(i + LIMIT - 1, #ARGV)))\n"
        "    call('ZREM', pset, unpack(ARGV, i, min(i + LIMIT - 1, #ARGV)))\n  end\n",
        tests=f"{USUAL_FILE}::test_a_minute_that_is_marked_while_it_is_computed_is_computed_again",
    ),
    generation(
        "two leaders may draw from the same one",
        "ick = %(new)s WHERE ick = %(before)s",
        "ick = %(new)s WHERE %(before)s::text IS NOT NULL",
        tests="services/test_rollup_disasters.py::"
        "test_of_two_who_begin_after_the_same_leader_one_leads",
    ),
    lead(
        "the Ick of the leader before stays",
        "            DirtyMinutes(marks, before).delete()\n",
        "            pass\n",
        tests=f"{DISASTERS}::test_a_crash_at_any_step_costs_no_ride_and_leaves_no_ick_behind",
    ),
    lead(
        "a leader that is idle and hangs is not ended",
        "        self.generation.check(self.connection)\n",
        "        pass\n",
        tests=f"{DISASTERS}::test_a_leader_that_hangs_is_replaced_and_wakes_up",
    ),
    lead(
        "the indexer's end is nobody's",
        "        if self._failure:\n            raise self._failure\n",
        "",
        tests=f"{USUAL_FILE}::test_what_ends_the_indexer_ends_the_lead_and_nothing_counts_as_progress",
    ),
    lead(
        "a lead waits for its longest minute",
        "            _hang_up(self.indexer.connection)",
        "            pass",
        tests=f"{USUAL_FILE}::test_a_minute_that_takes_long_does_not_hold_up_the_marking",
    ),
    indexer(
        "complete past what the marker has marked",
        "min(marked_upto, lowest - 1)",
        "lowest - 1",
        tests=f"{USUAL_FILE}::test_nothing_is_complete_past_the_checkpoint_though_it_is_marked",
    ),
    marker(
        "of the minutes of a batch only the first is marked",
        "for minute in found])\n        rides",
        "for minute in found[:1]])\n        rides",
    ),
    reader(
        "a gap counts with each of its pieces",
        "is_last=any(gap.upto == upto for gap in whole.gaps)",
        "is_last=True",
        tests="services/test_counts.py",
    ),
    minutes(
        "a minute counts rides that the streamer has not committed",
        "count(*) FILTER (WHERE id > 0 AND id <= upto) AS rides",
        "count(*) AS rides",
    ),
    minutes(
        "an earlier result replaces a later one",
        "        WHERE excluded.upto >= ride_minutes.upto\n",
        "        WHERE true\n",
        tests="services/test_rollup_disasters.py::"
        "test_an_earlier_result_never_replaces_a_later_one",
    ),
    indexer(
        "complete up to the lowest ride that is not rolled up",
        "min(marked_upto, lowest - 1)",
        "min(marked_upto, lowest)",
        tests="services/test_rollup.py::"
        "test_a_backlog_of_many_minutes_is_computed_in_steps_and_complete_to_rises_with_them",
    ),
    indexer(
        "complete up to whatever was marked",
        "min(marked_upto, lowest - 1)",
        "marked_upto",
        tests="services/test_rollup.py::"
        "test_a_backlog_of_many_minutes_is_computed_in_steps_and_complete_to_rises_with_them",
    ),
    set_aside(
        "a minute that is set aside again forgets its lowest ride",
        "lowest_ride_id = least(known.lowest_ride_id, excluded.lowest_ride_id)",
        "lowest_ride_id = excluded.lowest_ride_id",
        tests="services/test_rollup_poison.py::test_another_ride_in_the_minute_has_it_tried_again",
    ),
]
