"""Lies about what every reader with a checkpoint does: what it believes, skips, heals, moves."""

from functools import partial

from tests.mutants.mutant import Mutant

belief = partial(Mutant, file="consumers/belief.py", tests="fast/test_digest.py")
digest = partial(Mutant, file="consumers/digest.py", tests="fast/test_digest.py")
checkpoint = partial(Mutant, file="consumers/checkpoint.py", tests="services/test_consumer.py")
reader = partial(Mutant, file="consumers/reader.py", tests="services/test_consumer.py")
crashes = partial(Mutant, file="consumers/crashes.py", tests="services/test_counts.py")
running = partial(Mutant, file="consumers/running.py", tests="services/test_process.py")
committing = partial(Mutant, file="consumers/committing.py", tests="fast/test_committing.py")

MUTANTS = [
    belief(
        "a term's first ride is the one at which the term before ended",
        "return after < record.id <= upto",
        "return after <= record.id <= upto",
    ),
    belief(
        "a term has no end",
        "return after < record.id <= upto",
        "return after < record.id",
    ),
    digest(
        "the last ride that was committed is not",
        "if record.id > bounds.last_sent:",
        "if record.id >= bounds.last_sent:",
    ),
    digest(
        "what is not committed yet counts",
        "        if record.id > bounds.last_sent:\n            break\n",
        "",
    ),
    digest(
        "what is not committed ends the batch before anybody asks whose it is",
        """\
        if not is_ours(record, bounds):
            result.not_ours.add(record, bounds)
            result.last_redis_id = entry.redis_id
            continue
        if record.id > bounds.last_sent:
            break
""",
        """\
        if record.id > bounds.last_sent:
            break
        if not is_ours(record, bounds):
            result.not_ours.add(record, bounds)
            result.last_redis_id = entry.redis_id
            continue
""",
    ),
    digest(
        "the ride at which the reader stands counts again",
        "if record.id <= result.last_ride_id:",
        "if record.id < result.last_ride_id:",
    ),
    digest(
        "a gap begins where there is none",
        "if record.prev > result.last_ride_id:",
        "if record.prev >= result.last_ride_id:",
    ),
    digest(
        "a gap is not noticed",
        "if record.prev > result.last_ride_id:",
        "if False:",
    ),
    digest(
        "a gap of one ride is not noticed",
        "if record.prev > result.last_ride_id:",
        "if record.prev > result.last_ride_id + 1:",
        tests="fast/test_any_log.py::test_each_ride_counts_once_whatever_the_log_holds",
    ),
    digest(
        "an entry that is no record is read for ever",
        """\
            result.set_aside.append(SetAside(entry, str(reason)))
            result.last_redis_id = entry.redis_id
""",
        """\
            result.set_aside.append(SetAside(entry, str(reason)))
""",
    ),
    digest(
        "an entry that is not believed is read for ever",
        """\
            result.not_ours.add(record, bounds)
            result.last_redis_id = entry.redis_id
""",
        """\
            result.not_ours.add(record, bounds)
""",
    ),
    digest(
        "the rides that the log has lost at its end are not a gap",
        "if self.last_ride_id < upto:\n",
        "if self.last_ride_id > upto:\n",
    ),
    checkpoint(
        "the checkpoint moves from wherever it is",
        "AND last_redis_id = %(from_redis_id)s AND last_ride_id = %(from_ride_id)s",
        "",
        tests="services/test_consumer.py::"
        "test_two_processes_under_one_name_never_count_a_ride_twice",
    ),
    checkpoint(
        "the checkpoint moves from whatever ride it is at",
        "AND last_redis_id = %(from_redis_id)s AND last_ride_id = %(from_ride_id)s",
        "AND last_redis_id = %(from_redis_id)s",
        tests="services/test_resets_at_once.py::"
        "test_a_batch_from_before_a_reset_does_not_count_what_the_reset_did",
    ),
    checkpoint(
        "nobody looks whether the checkpoint moved",
        "if self._connection.execute(MOVE, values).rowcount != 1:",
        "if self._connection.execute(MOVE, values).rowcount > 1:",
        tests="services/test_consumer.py::"
        "test_two_processes_under_one_name_never_count_a_ride_twice",
    ),
    checkpoint(
        "a reader of another kind with the same name is moved, too",
        "WHERE kind = %(kind)s AND name = %(name)s\n      AND",
        "WHERE name = %(name)s\n      AND",
        tests="services/test_rollup.py::test_a_total_named_rollup_is_nobodys_marker",
    ),
    checkpoint(
        "a new lead forgets how far the one before was",
        "furthest = greatest(furthest, last_ride_id)",
        "furthest = last_ride_id",
        tests="services/test_counts.py::"
        "test_a_lead_that_dies_while_it_marks_again_heals_nothing_twice",
    ),
    checkpoint(
        "whoever repairs a checkpoint locks nobody out",
        'name = %s FOR NO KEY UPDATE"',
        'name = %s"',
        tests="services/test_resets_at_once.py::test_a_reset_waits_for_a_batch_in_flight",
    ),
    checkpoint(
        "whoever repairs a checkpoint waits for whoever asks for a reset",
        'name = %s FOR NO KEY UPDATE"',
        'name = %s FOR UPDATE"',
        tests="services/test_resets_at_once.py::"
        "test_an_older_reset_that_commits_late_never_applies",
    ),
    belief(
        "an entry that is set aside again counts again",
        "return connection.execute(SET_ASIDE, values).rowcount == 1",
        "return connection.execute(SET_ASIDE, values).rowcount >= 0",
        tests="services/test_consumer.py::"
        "test_an_invalid_entry_is_set_aside_once_and_stops_nothing",
    ),
    reader(
        "what was sent after the read is missing in it",
        "batch.close_gap(min(sent_before, bounds.last_sent))",
        "batch.close_gap(bounds.last_sent)",
        tests="services/test_consumer.py::"
        "test_what_is_sent_around_a_read_is_no_gap_and_no_strangers",
    ),
    reader(
        "what is lost ends where it did before last_sent was set back",
        "batch.close_gap(min(sent_before, bounds.last_sent))",
        "batch.close_gap(sent_before)",
        tests="services/test_consumer.py::test_a_gap_ends_where_the_lower_of_two_looks_has_it",
    ),
    reader(
        "only an empty read shows that the end of the log is lost",
        "if len(entries) < self._batch_size:",
        "if not entries:",
        tests="services/test_terms.py::"
        "test_a_tail_that_was_lost_is_healed_while_another_fleet_keeps_writing",
    ),
    reader(
        "a read that did not reach the end shows that it is lost",
        "if len(entries) < self._batch_size:",
        "if len(entries) <= self._batch_size:",
        tests="services/test_terms.py::test_a_tail_is_not_missing_while_there_is_more_to_read",
    ),
    belief(
        "what was sent is believed no further than the sequence stands",
        "self._terms.update(terms, max(last_drawn, last_sent))",
        "self._terms.update(terms, last_drawn)",
        tests="services/test_repair.py::test_entries_are_believed_while_the_sequence_is_set_back",
    ),
    reader(
        "the bounds are older than the entries",
        """\
        entries, just_arrived = self._read(wait)
        bounds, repair_is_due = self._ask()  # after the entries: see `digest`
""",
        """\
        bounds, repair_is_due = self._ask()
        entries, just_arrived = self._read(wait)
""",
        tests="services/test_consumer.py::"
        "test_what_is_sent_around_a_read_is_no_gap_and_no_strangers",
    ),
    reader(
        "a log that was wiped or restored is waited for",
        "if not entries and as_numbers(",
        "if False and as_numbers(",
        tests="services/test_consumer.py::"
        "test_a_log_that_ends_before_the_reader_is_read_again_from_its_start",
    ),
    reader(
        "ids of the log are compared as text",
        "as_numbers(self._log.last_id()) < as_numbers(self.at.redis_id)",
        "self._log.last_id() < self.at.redis_id",
        tests="services/test_consumer.py::"
        "test_a_log_that_ends_before_the_reader_is_read_again_from_its_start",
    ),
    reader(
        "a log that was wiped is counted from the first ride",
        "Digest(self.at.ride_id, START)",
        "Digest(0, START)",
        tests="services/test_consumer.py::test_a_log_that_lost_entries_heals",
    ),
    reader(
        "an idle round does not look again for what was sent meanwhile",
        "if self.at.ride_id < self._last_sent and done.did",
        "if False and done.did",
        tests="services/test_consumer.py::"
        "test_what_is_sent_around_a_read_is_no_gap_and_no_strangers",
    ),
    reader(
        "a reader's transactions see one snapshot",
        "psycopg.IsolationLevel.READ_COMMITTED",
        "psycopg.IsolationLevel.REPEATABLE_READ",
        tests="services/test_resets_at_once.py",
    ),
    reader(
        "the total and the checkpoint move in two transactions",
        "        with self._connection.transaction():\n            self.handler.fence()",
        "        if True:\n            self.handler.fence()",
    ),
    reader(
        "a checkpoint and its total are read at two moments",
        "            self.checkpoint.lock()\n            self.at = self._load()",
        "            self.at = self._load()",
        tests="services/test_consumer.py::"
        "test_a_consumer_begins_with_a_checkpoint_and_its_total_of_one_moment",
    ),
    reader(
        "a checkpoint is made in one transaction and its total in another",
        "        with self._connection.transaction():\n            if self.checkpoint.make():",
        "        if True:\n            if self.checkpoint.make():",
        tests="services/test_consumer.py::"
        "test_a_consumer_begins_with_a_checkpoint_and_its_total_of_one_moment",
    ),
    reader(
        "a repair locks nobody out",
        "            self.checkpoint.lock()\n            repair =",
        "            repair =",
        tests="services/test_resets_at_once.py",
    ),
    reader(
        "whoever heals locks its own rows before the checkpoint",
        "                self.checkpoint.lock()\n",
        "                pass\n",
        tests="services/test_resets_at_once.py",
    ),
    reader(
        "after a repair the reader goes on where it stood",
        "        self.at = moved_to\n",
        "",
        tests="services/test_resets.py",
    ),
    crashes(
        "a crash is counted again by each session",
        "owed, self._owed = self._owed, 0",
        "owed = self._owed",
        tests="services/test_counts.py::test_a_process_counts_its_injected_crashes",
    ),
    crashes(
        "a crash is forgotten",
        "self._owed += 1",
        "self._owed = 0",
        tests="services/test_counts.py::test_a_process_counts_its_injected_crashes",
    ),
    running(
        "a consumer that hangs keeps its locks for ever",
        "                idle_in_transaction_session_timeout=TIMEOUT,\n",
        "",
        tests="services/test_process.py::"
        "test_a_consumer_that_hangs_in_a_transaction_is_disconnected_and_begins_again",
    ),
    committing(
        "who looked too soon looks sooner",
        "TOO_SOON, IN_TIME = 1.25, 0.98",
        "TOO_SOON, IN_TIME = 0.98, 1.25",
    ),
    committing(
        "who once looked too soon waits longer each time, without an end",
        "min(max(learned, SHORTEST), LONGEST)",
        "max(learned, SHORTEST)",
    ),
    committing(
        "who looked in time waits shorter and shorter",
        "min(max(learned, SHORTEST), LONGEST)",
        "min(learned, LONGEST)",
    ),
    committing(
        "a slow time is never forgotten",
        "TOO_SOON, IN_TIME = 1.25, 0.98",
        "TOO_SOON, IN_TIME = 1.25, 1",
    ),
    reader(
        "a look is too soon if it has moved the reader",
        "learn(too_soon=stays)",
        "learn(too_soon=not stays)",
        tests="services/test_consumer.py",
    ),
    reader(
        "what waited in the log already is waited for",
        "if just_arrived:  # they",
        "if entries:  # they",
        tests="services/test_consumer.py",
    ),
]
