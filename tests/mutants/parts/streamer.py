"""Mutants of the streamer: the order barrier, the drain, the doorbell, trimming, repairing."""

from functools import partial

from tests.mutants.mutant import Mutant

barrier = partial(Mutant, file="unified_log/streamer/barrier.py", tests="services/test_barrier.py")
drain = partial(Mutant, file="unified_log/streamer/drain.py", tests="services/test_streamer.py")
doorbell = partial(
    Mutant, file="unified_log/streamer/doorbell.py", tests="services/test_doorbell.py"
)
trimming = partial(
    Mutant,
    file="unified_log/streamer/trimming.py",
    tests="services/test_trimming.py services/test_readers.py",
)
checks = partial(Mutant, file="unified_log/streamer/checks.py", tests="services/test_repair.py")
upkeep = partial(Mutant, file="unified_log/streamer/upkeep.py", tests="services/test_leader.py")
repair = partial(Mutant, file="unified_log/repair.py", tests="services/test_repair.py")
comparison = partial(Mutant, file="unified_log/streamer/comparison.py")
COMPARED = "services/test_comparison.py::"
LOCKED = "services/test_repair.py::test_whoever_locks_a_table_of_records_holds_up_no_leader"

MUTANTS = [
    Mutant(
        "stranded records are told as rows that were never staged",
        "staged.id = log_records.id)",
        "staged.id = log_records.id AND false)",
        "unified_log/streamer/comparison.py",
        "services/test_comparison.py::test_a_stranded_record_was_staged_and_its_repair_invents_no_bare_row",
    ),
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
        "only those that write rides are waited for",
        "relation = 'log_position'::regclass\n      AND database",
        "relation = 'rides'::regclass\n      AND database",
    ),
    barrier(
        "nobody is waited for",
        "mode = 'RowExclusiveLock' AND granted",
        "mode = 'ExclusiveLock' AND granted",
    ),
    barrier(
        "a prepared transaction is not waited for",
        "mode = 'RowExclusiveLock' AND granted",
        "mode = 'RowExclusiveLock' AND granted AND pid IS NOT NULL",
        tests="conformance/test_conformance.py",
    ),
    barrier(
        "whoever comes later is waited for, too",
        "self._wait.writers & self._writers()",
        "self._writers()",
    ),
    drain(
        "what is not settled is sent behind what is",
        "id > %s AND id <= %s ORDER BY",
        "id > %s AND id <= %s + 1000 ORDER BY",
        tests="services/test_barrier.py services/test_streamer.py",
    ),
    drain(
        "what was read ahead is sent although the batch before it failed",
        "following = self._move(",
        "self._following = following = self._move(",
    ),
    drain(
        "last_sent moves from wherever it is",
        "AND last_sent_id = %s AND",
        "AND %s::bigint >= 0 AND",
        tests="services/test_streamer.py::"
        "test_what_somebody_changes_by_hand_during_a_batch_is_not_committed_over",
    ),
    drain(
        "the next record is deleted, too",
        "self._connection.execute(DELETE_SENT, [sent]).rowcount",
        "self._connection.execute(DELETE_SENT, [[*sent, sent[-1] + 1]]).rowcount and len(sent)",
        tests="services/test_streamer.py::test_a_batch_deletes_what_it_has_sent_and_nothing_else",
    ),
    drain(
        "nobody looks whether exactly what was sent was deleted",
        "return deleted == len(sent) and moved == 1",
        "return moved == 1",
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
        file="unified_log/streamer/leading.py",
        tests="services/test_failover.py::"
        "test_a_leader_without_its_replicas_begins_no_term_and_appends_nothing",
    ),
    doorbell(
        "a bell that rang during the last look is slept through",
        "if not self.armed:",
        "if False:",
        tests="services/test_doorbell.py::"
        "test_a_bell_that_rings_during_the_last_look_is_not_slept_through",
    ),
    doorbell(
        "every ride rings",
        "setval('doorbell', 1, false)",
        "setval('doorbell', 1, true)",
        file="unified_log/schema/1_log.sql",
    ),
    trimming(
        "the log has no longest length",
        "\n            + self._log.trim_to(self._caps.length)",
        "",
    ),
    checks(
        "commits that wait for no standby pass for durable",
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
    Mutant(
        "readers that are behind rows that the log has passed are not told",
        "    leaders_term.revoke(connection, last_sent)\n"
        "    with connection.transaction():\n        nam",
        "    with connection.transaction():\n        nam",
        "unified_log/repair.py",
        COMPARED + "test_behind_a_staged_record_it_is_named_with_what_helps_there",
    ),
    repair(
        "what was staged twice is counted as sent again",
        "if (number := one_row(connection.execute(SENT_BEFORE))[0]) > gone:",
        "if (number := one_row(connection.execute(SENT_BEFORE))[0]) > 9:",
        tests="services/test_repair.py::"
        "test_a_record_staged_again_by_hand_is_not_counted_as_sent_again",
    ),
    repair(
        "rows that are known to be gone are records that were sent before",
        "if (number := one_row(connection.execute(SENT_BEFORE))[0]) > gone:",
        "if (number := one_row(connection.execute(SENT_BEFORE))[0]) > 0:",
        tests="services/test_repair.py::"
        "test_rows_that_are_known_to_be_gone_are_no_records_that_were_sent_before",
    ),
    repair(
        "the log still counts for repaired rides",
        "    leaders_term.revoke(connection, last_sent)\n"
        "    with connection.transaction():\n        rec",
        "    with connection.transaction():\n        rec",
        tests="services/test_repair.py::"
        "test_a_consumer_that_begins_after_a_repair_counts_the_repaired_rides",
    ),
    repair(
        "the rollup goes back to the lowest repaired ride, and not below it",
        "least(complete_to, ride_id - 1),\n        generation",
        "least(complete_to, ride_id),\n        generation",
        file="migrations/versions/0010_schema.sql",
        tests="services/test_rollup_disasters.py::"
        "test_rides_behind_the_logs_back_are_rolled_up_after_a_repair",
    ),
    repair(
        "a sweep under way may undo a repair",
        "set_backs = set_backs + 1",
        "set_backs = set_backs",
        file="migrations/versions/0010_schema.sql",
        tests="services/queue/test_sweeping.py::"
        "test_a_ride_that_is_repaired_under_the_sweeps_feet_is_swept_the_next_time",
    ),
    comparison(
        "a leader whose state is gone compares with nothing",
        "connection.execute(STATE).fetchone()) is None",
        "connection.execute(STATE).fetchone() or (0, 0)) is None",
        tests=COMPARED + "test_a_state_that_is_gone_is_said_to_be",
    ),
    comparison(
        "rows that could not be counted are never counted",
        "        missed = 0\n",
        "        self._sent, missed = state, 0\n",
        tests=COMPARED + "test_rows_that_could_not_be_counted_are_counted_at_the_next_look",
    ),
    comparison(
        "rows that were counted are not named if the outbox can't be read",
        """\
        bare, following, different = one_row(connection.execute(look))
        found = self._missed(connection)
""",
        """\
        found = self._missed(connection)
        bare, following, different = one_row(connection.execute(look))
""",
        tests=COMPARED + "test_rows_that_could_not_be_counted_are_counted_at_the_next_look",
    ),
    comparison(
        "a row behind a staged record is to be left out of the log",
        "LEAVE_OUT if following is None or bare[0] < following else LATER",
        "LEAVE_OUT",
        tests=COMPARED + "test_behind_a_staged_record_it_is_named_with_what_helps_there",
    ),
    checks(
        "a checkpoint with a type that is null hides unhandled types",
        "WHERE NOT EXISTS (SELECT FROM current_checkpoints WHERE type = ANY(types))",
        "WHERE type NOT IN (SELECT unnest(types) FROM current_checkpoints)",
        tests="services/test_leader.py",
    ),
    checks(
        "whoever locks the table of one kind stops the log of all",
        "SELECT max(id) FROM staged_log_records WHERE id > last_sent_id",
        "SELECT max(id) FROM log_records WHERE id > last_sent_id",
        tests=LOCKED,
    ),
    upkeep(
        "a look that waits in vain for a lock ends the leader's session",
        "except (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable):",
        "except psycopg.errors.QueryCanceled:",
        tests=LOCKED,
    ),
]
