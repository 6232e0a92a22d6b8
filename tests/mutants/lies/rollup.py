"""Lies about the rollup: marks, generations, computed minutes, `complete_to`."""

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
        "an Ick that was lost passes for an empty one",
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
    dirty(
        "a great ride's score is above the ride",
        "return score if int(score) <= ride else math.nextafter(score, 0)",
        "return score",
        tests="fast/test_any_period.py::"
        "test_a_marks_score_is_the_greatest_double_that_is_not_above_its_ride",
    ),
    dirty(
        "a minute that is marked again gets its new ride",
        'self._key, "LT", *pairs',
        "self._key, *pairs",
        tests="services/test_rollup.py",
    ),
    dirty(
        "a mark that is there already is counted again",
        'self.count += int(self._log.command("ZADD", self._key, "LT", *pairs))',
        'self._log.command("ZADD", self._key, "LT", *pairs)\n'
        "            self.count += len(pairs) // 2",
    ),
    generation(
        "two leaders may draw from the same one",
        "ick = %(new)s WHERE ick = %(before)s",
        "ick = %(new)s WHERE %(before)s::text IS NOT NULL",
        tests="services/test_rollup_disasters.py::"
        "test_of_two_who_begin_after_the_same_leader_one_leads",
    ),
    generation(
        "another generation may begin while a leader moves",
        "WHERE generation = %s FOR SHARE",
        "WHERE generation = %s",
        tests="services/test_rollup_disasters.py::"
        "test_what_a_stale_leader_attempts_waits_for_its_successor_and_is_refused",
    ),
    generation(
        "a leader that was overtaken goes on",
        "if self._connection.execute(HOLD, [self.name]).rowcount != 1:",
        "if self._connection.execute(HOLD, [self.name]).rowcount > 1:",
        tests=f"{DISASTERS}::test_a_leader_that_was_overtaken_leaves_no_marks_behind",
    ),
    generation(
        "a leader that was overtaken says how far it is complete",
        "WHERE generation = %s RETURNING complete_to",
        "WHERE %s::text IS NOT NULL RETURNING complete_to",
        tests=f"{DISASTERS}::"
        "test_what_a_stale_leader_attempts_waits_for_its_successor_and_is_refused",
    ),
    generation(
        "complete_to rises above a minute that was set aside",
        "least(\n        %s, (SELECT min(lowest_ride_id) - 1 FROM set_aside_minutes)\n    )",
        "%s",
        tests="services/test_rollup_poison.py::"
        "test_a_poisonous_minute_is_set_aside_seen_and_tried_again",
    ),
    generation(
        "complete_to rises to the lowest ride that was set aside",
        "(SELECT min(lowest_ride_id) - 1 FROM",
        "(SELECT min(lowest_ride_id) FROM",
        tests="services/test_rollup_poison.py::"
        "test_a_poisonous_minute_is_set_aside_seen_and_tried_again",
    ),
    generation(
        "complete_to may fall",
        "SET complete_to = greatest(complete_to, least(",
        "SET complete_to = greatest(0, least(",
        tests="services/test_rollup.py::test_what_is_complete_stays_so",
    ),
    generation(
        "a new lead goes on behind what the one before has marked",
        "self.met_upto = checkpoint.go_back(self.complete_to)",
        "self.met_upto = self.complete_to",
        tests="services/test_rollup.py::test_everything_can_be_computed_anew_while_no_ride_comes",
    ),
    generation(
        "an idle leader does not notice a repair",
        "NOT EXISTS (SELECT FROM rollup_state WHERE generation = %s)",
        "%s::text IS NULL",
        tests="services/test_rollup.py::test_everything_can_be_computed_anew_while_no_ride_comes",
    ),
    lead(
        "the Ick of the leader before stays",
        "            DirtyMinutes(log, before).delete()\n",
        "            pass\n",
        tests="services/test_rollup.py::"
        "test_each_lead_deletes_the_ick_of_the_one_before_and_no_other",
    ),
    lead(
        "a leader that was overtaken leaves its Ick behind",
        "            self.dirty.delete()\n",
        "",
        tests=f"{DISASTERS}::test_a_leader_that_was_overtaken_leaves_no_marks_behind",
    ),
    lead(
        "the leader's transactions see one snapshot",
        "psycopg.IsolationLevel.READ_COMMITTED",
        "psycopg.IsolationLevel.REPEATABLE_READ",
        explained="the reader sets the session's level again: only a generation is drawn so, and"
        " whoever meets another who draws has to begin anew either way",
    ),
    marker(
        "of the minutes of a batch only the first is marked",
        "for minute in found])\n        rides",
        "for minute in found[:1]])\n        rides",
    ),
    marker(
        "a minute is marked with its last ride",
        "Mark(minute.name, minute.lowest)",
        "Mark(minute.name, minute.highest)",
        tests="services/test_rollup.py::"
        "test_a_backlog_of_many_minutes_is_computed_in_steps_and_complete_to_rises_with_them",
    ),
    marker(
        "a leader that was overtaken moves the checkpoint",
        "        self._generation.hold()\n",
        "",
        tests="services/test_rollup_disasters.py::"
        "test_what_a_stale_leader_attempts_waits_for_its_successor_and_is_refused",
    ),
    marker(
        "the last ride of a batch is not marked",
        "WHERE id > %(after)s AND id <= %(upto)s",
        "WHERE id > %(after)s AND id < %(upto)s",
    ),
    marker(
        "a whole piece passes for a part of one",
        "return upto if rides < PIECE else",
        "return upto if rides <= PIECE else",
        tests="services/test_rollup.py services/test_counts.py",
    ),
    reader(
        "the checkpoint moves past what is not marked yet",
        "        if upto < batch.last_ride_id:\n",
        "        if upto > batch.last_ride_id:\n",
    ),
    marker(
        "what an earlier lead has met is healed again",
        "gap._replace(after=max(gap.after, met))",
        "gap",
        tests="services/test_counts.py",
    ),
    marker(
        "a gap that an earlier lead has met counts again",
        "if gap.upto <= met:",
        "if False:",
        tests="services/test_counts.py",
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
        "the metres of a minute are those of more rides than it has",
        "sum(distance) FILTER (WHERE id > 0 AND id <= upto) AS distance",
        "sum(distance) AS distance",
    ),
    minutes(
        "an earlier result replaces a later one",
        "        WHERE excluded.upto >= ride_minutes.upto\n",
        "",
        tests="services/test_rollup_disasters.py::"
        "test_an_earlier_result_never_replaces_a_later_one",
    ),
    minutes(
        "the same result does not replace itself",
        "WHERE excluded.upto >= ride_minutes.upto",
        "WHERE excluded.upto > ride_minutes.upto",
    ),
    minutes(
        "a minute keeps its first label",
        "distance = excluded.distance, upto = excluded.upto",
        "distance = excluded.distance",
        tests="services/test_rollup.py::test_rides_are_in_their_minutes_to_the_millimetre",
    ),
    minutes(
        "a new generation may begin while a minute is computed",
        "LIMIT 1 FOR SHARE",
        "LIMIT 1",
        tests="services/test_rollup_disasters.py::"
        "test_what_a_stale_leader_attempts_waits_for_its_successor_and_is_refused",
    ),
    minutes(
        "the first ride of the next minute is looked at, too",
        "created_at < until GROUP BY 1",
        "created_at <= until GROUP BY 1",
        explained="it is in a minute of its own, which is put only if it was asked for as well, and"
        " then all of it lies in the stretch",
    ),
    minutes(
        "a ride of a minute's first moment is not in it",
        "WHERE created_at >= first AND",
        "WHERE created_at > first AND",
    ),
    minutes(
        "a minute without rides keeps those it had",
        "            UNION ALL SELECT minute, 0, 0, true FROM wanted\n",
        "            UNION ALL SELECT minute, 0, 0, true FROM wanted\n"
        "            WHERE minute IN (SELECT minute FROM counted)\n",
    ),
    minutes(
        "a minute that is right stays set aside",
        "        WHERE set_aside_minutes.minute = wanted.minute\n",
        "        WHERE set_aside_minutes.minute = wanted.minute AND NOT retry\n",
        tests="services/test_rollup_poison.py::"
        "test_a_poisonous_minute_is_set_aside_seen_and_tried_again",
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
    indexer(
        "minutes leave the Ick before they are computed",
        "        if self._compute(batch, SHORT) is None:\n            self._size ="
        " min(self._size * 2, AT_ONCE)\n            self._remove(batch)\n",
        "        self._remove(batch)\n        if self._compute(batch, SHORT) is None:\n"
        "            self._size = min(self._size * 2, AT_ONCE)\n",
        tests="services/test_rollup_poison.py",
    ),
    indexer(
        "a minute whose row is locked is set aside",
        "if isinstance(error, psycopg.errors.LockNotAvailable):",
        "if False:",
        tests="services/test_rollup_poison.py::"
        "test_a_minute_whose_row_is_locked_waits_alone_and_is_computed_afterwards",
    ),
    indexer(
        "a minute that fails leaves the Ick without being set aside",
        "            self._set_aside(mark, refusal(error),"
        " ATTEMPTS if attempts == ATTEMPTS else 1)\n",
        "            pass\n",
        tests="services/test_rollup_poison.py",
    ),
    indexer(
        "a leader that was overtaken sets minutes aside",
        "            self._generation.hold()\n            is_new",
        "            is_new",
        tests="services/test_rollup_disasters.py::"
        "test_what_a_stale_leader_attempts_waits_for_its_successor_and_is_refused",
    ),
    indexer(
        "a server that can't write is a minute's fault",
        "    psycopg.DataError,\n    psycopg.IntegrityError,\n",
        "    psycopg.Error,\n",
        tests="services/test_rollup_poison.py::test_a_disk_that_is_full_is_no_minutes_fault",
    ),
    aside(
        "a minute that is set aside again forgets its lowest ride",
        "lowest_ride_id = least(known.lowest_ride_id, excluded.lowest_ride_id)",
        "lowest_ride_id = excluded.lowest_ride_id",
        tests="services/test_rollup_poison.py::test_another_ride_in_the_minute_has_it_tried_again",
    ),
    aside(
        "a minute that failed again is tried for ever",
        "set_aside_at = excluded.set_aside_at, retry = false",
        "set_aside_at = excluded.set_aside_at",
        tests="services/test_rollup_poison.py::"
        "test_many_bad_minutes_are_tried_one_in_each_round_but_without_a_pause",
    ),
]
