"""Mutants of the rollup: marks, generations, computed minutes, `complete_to`."""

from functools import partial

from tests.mutants.mutant import Mutant

DISASTERS = "services/test_rollup_disasters.py"
USUAL = f"services/test_rollup.py {DISASTERS}"
POISON = "services/test_rollup_poison.py"

dirty = partial(Mutant, file="consumers/rollup/dirty.py", tests=USUAL)
generation = partial(Mutant, file="consumers/rollup/generation.py", tests=USUAL)
lead = partial(Mutant, file="consumers/rollup/lead.py", tests=USUAL)
marker = partial(Mutant, file="consumers/rollup/marker.py", tests=USUAL)
reader = partial(Mutant, file="consumers/reader.py", tests=USUAL)
minutes = partial(Mutant, file="consumers/rollup/minutes.py", tests=USUAL)
indexer = partial(Mutant, file="consumers/rollup/indexer.py", tests=f"{USUAL} {POISON}")
aside = partial(Mutant, file="consumers/rollup/set_aside.py", tests=POISON)

MUTANTS = [
    dirty(
        "a dirty set that was lost passes for an empty one",
        'if int(self._log.command("ZCARD", self._key)) != self.count:',
        "if False:",
        tests=f"{DISASTERS}::test_marks_that_redis_loses_are_missed_and_made_again",
    ),
    dirty(
        "a Redis that took over without the newest marks passes",
        "if self._log.replication_id() != self._server:",
        "if False:",
        tests=f"{DISASTERS}::test_marks_that_redis_loses_are_missed_and_made_again",
    ),
    generation(
        "two leaders may draw from the same one",
        "ick = %(new)s WHERE ick = %(before)s",
        "ick = %(new)s WHERE %(before)s::text IS NOT NULL",
        tests="services/test_rollup_disasters.py::"
        "test_of_two_who_begin_after_the_same_leader_one_leads",
    ),
    lead(
        "the dirty set of the leader before stays",
        "            DirtyMinutes(log, before).delete()\n",
        "            pass\n",
        tests="services/test_rollup.py::"
        "test_each_lead_deletes_the_dirty_set_of_the_one_before_and_no_other",
    ),
    marker(
        "of the minutes of a batch only the first is marked",
        "for minute in found])\n        rides",
        "for minute in found[:1]])\n        rides",
    ),
    reader(
        "a gap counts with each of its pieces",
        "is_last=any(gap.upto == upto for gap in gaps)",
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
        "marked_upto if lowest is None else lowest - 1",
        "marked_upto if lowest is None else lowest",
        tests="services/test_rollup.py::"
        "test_a_backlog_of_many_minutes_is_computed_in_steps_and_complete_to_rises_with_them",
    ),
    indexer(
        "complete up to whatever was marked",
        "marked_upto if lowest is None else lowest - 1",
        "marked_upto",
        tests="services/test_rollup.py::"
        "test_a_backlog_of_many_minutes_is_computed_in_steps_and_complete_to_rises_with_them",
    ),
    aside(
        "a minute that is set aside again forgets its lowest ride",
        "lowest_ride_id = least(known.lowest_ride_id, excluded.lowest_ride_id)",
        "lowest_ride_id = excluded.lowest_ride_id",
        tests="services/test_rollup_poison.py::test_another_ride_in_the_minute_has_it_tried_again",
    ),
]
