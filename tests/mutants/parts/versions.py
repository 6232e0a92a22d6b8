"""Mutants of the rows that every batch updates, and of who holds the oldest snapshot."""

from functools import partial

from tests.mutants.mutant import Mutant

CHEAP = (
    "services/test_held_snapshot.py::"
    "test_what_every_batch_reads_is_as_cheap_however_many_dead_versions_there_are"
)
WRITERS = "services/test_two_writers.py::"
NAMED = "services/test_held_snapshots_named.py::"
drain = partial(Mutant, file="unified_log/streamer/drain.py", tests=CHEAP)
checkpoint = partial(Mutant, file="unified_log/readers/checkpoint.py", tests=CHEAP)

MUTANTS = [
    drain(
        "the last that was sent keeps its version",
        "SET version = version + 1, last_sent_id",
        "SET last_sent_id",
    ),
    checkpoint(
        "a checkpoint keeps its version",
        "SET version = version + 1,\n        last_redis_id",
        "SET last_redis_id",
    ),
    checkpoint(
        "a checkpoint is looked for among all of its versions",
        "AND name = %s\n    ORDER BY version DESC LIMIT 1",
        "AND name = %s",
    ),
    checkpoint(
        "who waits for a checkpoint locks nothing",
        "AND version >= (\n        SELECT version FROM checkpoints WHERE kind = %(kind)s AND name ="
        " %(name)s\n        ORDER BY version DESC LIMIT 1\n    ) FOR UPDATE",
        "AND version = (\n        SELECT version FROM checkpoints WHERE kind = %(kind)s AND name ="
        " %(name)s\n        ORDER BY version DESC LIMIT 1\n    ) FOR UPDATE",
        tests=WRITERS + "test_who_locks_a_checkpoint_that_is_moving_sees_where_it_has_moved",
    ),
    Mutant(
        "what a worker of the receipts counts keeps its version",
        "SET version = version + 1,\n            entries_ignored",
        "SET\n            entries_ignored",
        file="consumers/receipts/statements.py",
        tests=CHEAP,
    ),
    Mutant(
        "what a worker counts while its other loop counts is lost",
        "version >= (\n            SELECT version FROM receipts_workers WHERE name = %(worker)s\n"
        "            ORDER BY version DESC LIMIT 1\n        ) AND (",
        "version = (\n            SELECT version FROM receipts_workers WHERE name = %(worker)s\n"
        "            ORDER BY version DESC LIMIT 1\n        ) AND (",
        file="consumers/receipts/statements.py",
        tests=WRITERS + "test_what_two_loops_of_a_worker_count_at_the_same_time_counts_twice",
    ),
    Mutant(
        "a worker looks back no further than it has looked before",
        "ALL if look_at_all else None if look_back else self._begin_at",
        "ALL if look_at_all else self._begin_at",
        file="consumers/receipts/queue.py",
        tests="services/test_delivery.py::"
        "test_what_fell_due_before_another_was_taken_is_found_soon",
    ),
    Mutant(
        "a loop of the rollup that waits for the other is overtaken",
        "WHERE version >= (SELECT version FROM rollup_state ORDER BY version DESC LIMIT 1)\n"
        "      AND generation = %s RETURNING complete_to",
        "WHERE version = (SELECT version FROM rollup_state ORDER BY version DESC LIMIT 1)\n"
        "      AND generation = %s RETURNING complete_to",
        file="consumers/rollup/generation.py",
        tests=WRITERS + "test_two_loops_of_a_lead_wait_for_each_other",
    ),
    Mutant(
        "a row may be there twice",
        "    IF is_there THEN\n",
        "    IF false THEN\n",
        file="unified_log/schema/1_log.sql",
        tests=WRITERS + "test_there_is_one_row_whatever_its_version",
    ),
    Mutant(
        "who takes one snapshot after the other holds one",
        "holder = row[:3] if row else None",
        "holder = row[:1] if row else None",
        file="unified_log/streamer/held_snapshots.py",
        tests=NAMED + "test_who_holds_none_for_long_or_one_elsewhere_is_not_named",
    ),
    Mutant(
        "any application of the server holds a snapshot here",
        "(datname = current_database() OR datname IS NULL) AND ",
        "",
        file="unified_log/streamer/held_snapshots.py",
        tests=NAMED + "test_who_holds_none_for_long_or_one_elsewhere_is_not_named",
    ),
    Mutant(
        "a vacuum that somebody began is named",
        "          AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)\n",
        "",
        file="unified_log/streamer/held_snapshots.py",
        tests=NAMED + "test_a_vacuum_is_not_named",
    ),
]
