"""Lies about the streamer: the order barrier, the drain, the doorbell, trimming, repairing."""

from functools import partial

from tests.mutants.mutant import Mutant

barrier = partial(Mutant, file="streamer/barrier.py", tests="services/test_barrier.py")
drain = partial(Mutant, file="streamer/drain.py", tests="services/test_streamer.py")
doorbell = partial(Mutant, file="streamer/doorbell.py", tests="services/test_doorbell.py")
trimming = partial(
    Mutant,
    file="streamer/trimming.py",
    tests="services/test_trimming.py services/test_readers.py",
)
checks = partial(Mutant, file="streamer/checks.py", tests="services/test_repair.py")
upkeep = partial(Mutant, file="streamer/upkeep.py", tests="services/test_leader.py")
repair = partial(Mutant, file="streamer/repair.py", tests="services/test_repair.py")

MUTANTS = [
    barrier(
        "the writers are listed before the sequence is read",
        """\
            position = self._last_drawn()
            if position == self._settled:
                return position
            self._wait = Wait(position, self._writers())
""",
        """\
            writers = self._writers()
            position = self._last_drawn()
            if position == self._settled:
                return position
            self._wait = Wait(position, writers)
""",
    ),
    barrier(
        "nobody is waited for",
        "mode = 'RowExclusiveLock' AND granted",
        "mode = 'ExclusiveLock' AND granted",
    ),
    barrier(
        "whoever comes later is waited for, too",
        "self._wait.writers & self._writers()",
        "self._writers()",
    ),
    barrier(
        "a prepared transaction, which has no session, is not waited for",
        "FROM pg_locks\n    WHERE",
        "FROM pg_locks JOIN pg_stat_activity USING (pid)\n    WHERE",
    ),
    barrier(
        "what was drawn while it waited is called settled",
        "self._settled = self._wait.position",
        "self._settled = self._last_drawn()",
    ),
    barrier(
        "writers in a copy of this database are waited for",
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        "",
    ),
    drain(
        "what is not settled is sent behind what is",
        "id > %s AND id <= %s ORDER BY",
        "id > %s AND id <= %s + 1000 ORDER BY",
        tests="services/test_barrier.py services/test_streamer.py",
    ),
    drain("a batch is in no order", "ORDER BY id LIMIT", "ORDER BY id DESC LIMIT"),
    drain(
        "everything up to the last record is deleted",
        "WHERE id = ANY(%b)",
        "WHERE id <= (SELECT max(sent) FROM unnest(%b::bigint[]) sent)",
        tests="services/test_repair.py::test_stranded_rides_are_repaired_and_all_totals_end_exact",
    ),
    drain(
        "the leader of an older term may commit",
        "({terms.NEWEST}) = %s",
        "({terms.NEWEST}) <> %s || 'x'",
        tests="services/test_terms.py",
    ),
    drain(
        "last_sent moves from wherever it is",
        "WHERE last_sent_id = %s AND",
        "WHERE %s::bigint >= 0 AND",
        tests="services/test_streamer.py::"
        "test_what_somebody_changes_by_hand_during_a_batch_is_not_committed_over",
    ),
    drain(
        "nobody looks whether exactly what was sent was deleted",
        "return deleted == len(sent) and moved == 1",
        "return moved == 1",
    ),
    drain(
        "nobody looks whether last_sent moved",
        "return deleted == len(sent) and moved == 1",
        "return deleted == len(sent)",
        tests="services/test_terms.py services/test_streamer.py",
    ),
    drain(
        "the delete and the move are two transactions",
        "with self._connection.transaction():",
        "if self._connection:",
    ),
    drain(
        "a full batch is taken for the last one",
        "if len(batch) < self._batch_size:",
        "if len(batch) <= self._batch_size:",
    ),
    drain(
        "the streamer goes on behind the first record of the batch",
        "self.last_sent = batch[-1][0]",
        "self.last_sent = batch[0][0]",
    ),
    drain(
        "a record is chained to the number before its own",
        "with self._log.appending(batch, self.last_sent, self.term):",
        "with self._log.appending(batch, batch[0][0] - 1, self.term):",
        tests="services/test_barrier.py::test_a_position_drawn_and_rolled_back_holds_nothing_up",
    ),
    drain(
        "a batch counts as one record sent",
        "records_sent = records_sent + %s",
        "records_sent = records_sent + least(%s, 1)",
        tests="services/test_counts.py::test_records_sent_and_staged_are_all_rides",
    ),
    drain(
        "Postgres deletes though Redis has refused the batch before",
        "self._redis_accepts = False",
        "self._redis_accepts = True",
        tests="services/test_trimming.py",
    ),
    drain(
        "the leader's transactions see one snapshot",
        "psycopg.IsolationLevel.READ_COMMITTED",
        "psycopg.IsolationLevel.REPEATABLE_READ",
        tests="services/test_streamer.py::"
        "test_what_somebody_changes_by_hand_during_a_batch_is_not_committed_over",
    ),
    drain(
        "a leader without its replicas appends all the same",
        "    log.wait_for_replicas()  # else",
        "    # else",
        file="streamer/__main__.py",
        tests="services/test_failover.py::"
        "test_a_leader_without_its_replicas_begins_no_term_and_appends_nothing",
    ),
    drain(
        "a leader whose statement hangs leads for ever",
        "                statement_timeout=timeout,\n",
        "",
        file="streamer/__main__.py",
        tests="services/test_leader.py::"
        "test_a_leader_whose_statement_hangs_is_stopped_by_the_server",
    ),
    drain(
        "a leader that hangs inside a batch leads for ever",
        "                idle_in_transaction_session_timeout=timeout,\n",
        "",
        file="streamer/__main__.py",
        tests="services/test_leader.py::test_a_leader_stopped_inside_a_batch_is_replaced",
    ),
    doorbell(
        "a bell that rang during the last look is slept through",
        "if not self.armed:",
        "if False:",
        tests="services/test_doorbell.py::"
        "test_a_bell_that_rings_during_the_last_look_is_not_slept_through",
    ),
    doorbell(
        "a bell that was lost is never armed again",
        "        if not woken:\n            self.arm()\n",
        "",
    ),
    doorbell(
        "a bell that rings while it is armed counts as silent",
        "        self.armed = True\n        self._connection.execute(ARM)\n",
        "        self._connection.execute(ARM)\n        self.armed = True\n",
        tests="services/test_doorbell.py::"
        "test_a_bell_that_rings_while_it_is_armed_is_not_slept_through",
    ),
    doorbell(
        "who is asked to stop sleeps on",
        "[stop.fileno(), self._connection.fileno()]",
        "[self._connection.fileno()]",
        tests="services/test_doorbell.py::test_a_process_that_is_asked_to_stop_sleeps_no_longer",
    ),
    doorbell(
        "every ride rings",
        "setval('doorbell'::regclass, 1, false)",
        "setval('doorbell'::regclass, 1, true)",
        file="migrations/versions/0010_schema.sql",
    ),
    trimming(
        "the log is trimmed up to its end, whoever has not read it",
        "self._log.trim_before(self.slowest())\n",
        "self._log.trim_before(self._log.last_id())\n",
    ),
    trimming(
        "the log has no longest length",
        "\n            + self._log.trim_to(self._caps.length)",
        "",
    ),
    trimming(
        "a full Redis is not trimmed below the slowest reader",
        "return past or self._log.trim_to(self._log.length() // 2, exactly=True)",
        "return past",
    ),
    trimming(
        "an age in seconds is taken for milliseconds",
        "self._caps.age * 1000",
        "self._caps.age",
        tests="services/test_readers.py::"
        "test_entries_that_are_too_old_go_whoever_has_not_read_them",
    ),
    trimming(
        "a full Redis is trimmed by whole nodes alone",
        "past = self._log.trim_before(self.slowest(), exactly=True)",
        "past = self._log.trim_before(self.slowest())",
    ),
    checks(
        "a sequence that was set back by one passes",
        "if last_drawn < taken:",
        "if last_drawn < taken - 1:",
        tests="services/test_repair.py::"
        "test_a_sequence_that_was_set_back_would_draw_what_was_drawn_already",
    ),
    checks(
        "a sequence that begins again at its end passes",
        "increment != 1 or cycles:",
        "increment != 1:",
        tests="services/test_repair.py::test_a_leader_holds_the_log_while_numbers_may_not_rise",
    ),
    checks(
        "rides that were not sent yet are forgotten where the sequence is checked",
        "greatest(last_sent_id, (SELECT max(id) FROM rides)) AS taken",
        "last_sent_id AS taken",
        tests="services/test_repair.py::"
        "test_a_sequence_that_was_set_back_would_draw_what_was_drawn_already",
    ),
    checks(
        "what was sent is forgotten where the sequence is checked",
        "greatest(last_sent_id, (SELECT max(id) FROM rides)) AS taken",
        "coalesce((SELECT max(id) FROM rides), 0) AS taken",
        tests="services/test_repair.py::"
        "test_a_sequence_that_was_set_back_would_draw_what_was_drawn_already",
    ),
    checks(
        "a record stranded at last_sent itself is overlooked",
        "WHERE id <= %s ORDER BY id LIMIT 11",
        "WHERE id < %s ORDER BY id LIMIT 11",
        tests="services/test_repair.py::test_a_record_staged_again_by_hand_changes_no_total",
    ),
    checks(
        "commits that wait for no disk but their own pass for durable",
        "('off', 'local')",
        "('off')",
        tests="services/test_leader.py::test_a_commit_that_may_be_lost_is_warned_about",
    ),
    upkeep(
        "nobody looks whether the servers are durable",
        "checks.durability_warnings(connection, log)",
        "[]",
        tests="services/test_leader.py::"
        "test_a_setting_that_changes_under_a_leader_is_warned_about_once",
    ),
    upkeep(
        "a sequence that is changed under a leader is not noticed",
        "            checks.require_rising_sequence(self._connection)\n",
        "",
        tests="services/test_repair.py::test_a_leader_holds_the_log_while_numbers_may_not_rise",
    ),
    repair(
        "the log is still believed about repaired rides",
        "    leaders_term.disown(connection, last_sent)\n",
        "",
        tests="services/test_repair.py::"
        "test_a_consumer_that_begins_after_a_repair_counts_the_repaired_rides",
    ),
    repair(
        "the rollup goes back to the lowest repaired ride, and not below it",
        "least(complete_to, %(lowest)s - 1), generation",
        "least(complete_to, %(lowest)s), generation",
        tests="services/test_rollup_disasters.py::"
        "test_rides_behind_the_logs_back_are_rolled_up_after_a_repair",
    ),
    repair(
        "a repair begins no new generation",
        "generation = %(generation)s\n",
        "generation = generation\n",
        tests="services/test_rollup_disasters.py::"
        "test_rides_behind_the_logs_back_are_rolled_up_after_a_repair",
    ),
    repair(
        "a sweep under way may undo a repair",
        "set_backs = set_backs + 1",
        "set_backs = set_backs",
        file="rocket_rides/receipts.py",
        tests="services/queue/test_sweeping.py::"
        "test_a_ride_that_is_repaired_under_the_sweeps_feet_is_swept_the_next_time",
    ),
    repair(
        "receipts go back to the lowest repaired ride, and not below it",
        "SELECT %s::bigint - 1 AS upto",
        "SELECT %s::bigint AS upto",
        file="rocket_rides/receipts.py",
        tests="services/test_receipts_lost.py::"
        "test_a_repaired_ride_gets_its_receipt_although_the_sweep_was_past_it",
    ),
    repair(
        "a reset's total has rides past last_sent",
        "FROM rides WHERE id <= %(last_sent)s\n        RETURNING",
        "FROM rides\n        RETURNING",
        tests="services/test_repair.py::test_rides_that_are_yet_to_be_sent_are_left_to_the_log",
    ),
    repair(
        "repaired records are not counted as sent",
        "            connection.execute(COUNT_REPAIRED, [len(rides)])\n",
        "",
        tests="services/test_counts.py::test_records_sent_and_staged_are_all_rides",
    ),
    repair(
        "a writer that may still commit such a ride is not waited for",
        "while barrier.waiting and not stop.wait(POLL):",
        "while False:",
        tests="services/test_repair.py::test_a_writer_that_may_commit_such_a_ride_is_waited_for",
    ),
    repair(
        "repaired while the sequence strands more",
        "    checks.require_rising_sequence(connection)\n",
        "",
        tests="services/test_repair.py::test_nothing_is_repaired_while_more_would_come",
    ),
    repair(
        "a repair takes records out that are yet to be sent",
        "WHERE id <= %s RETURNING id",
        "WHERE id <= %s + 1 RETURNING id",
        tests="services/test_repair.py::test_rides_that_are_yet_to_be_sent_are_left_to_the_log",
    ),
]
