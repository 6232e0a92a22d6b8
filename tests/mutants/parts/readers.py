"""Mutants of what every reader with a checkpoint does: what it counts, skips, heals and moves."""

from functools import partial

from tests.mutants.mutant import Mutant

ours = partial(Mutant, file="unified_log/readers/committed.py", tests="fast/test_digest.py")
digest = partial(Mutant, file="unified_log/readers/digest.py", tests="fast/test_digest.py")
checkpoint = partial(
    Mutant, file="unified_log/readers/checkpoint.py", tests="services/test_consumer.py"
)
reader = partial(Mutant, file="unified_log/readers/reader.py", tests="services/test_consumer.py")
crashes = partial(Mutant, file="unified_log/readers/crashes.py", tests="services/test_counts.py")
running = partial(Mutant, file="unified_log/readers/running.py", tests="services/test_process.py")
committing = partial(
    Mutant, file="unified_log/readers/committing.py", tests="fast/test_committing.py"
)

MUTANTS = [
    ours(
        "a term's first ride is the one at which the term before ended",
        "return after < record.id <= upto",
        "return after <= record.id <= upto",
    ),
    ours(
        "a term has no end",
        "return after < record.id <= upto",
        "return after < record.id",
    ),
    digest(
        "the last committed ride does not count",
        "elif record.id > bounds.last_sent:",
        "elif record.id >= bounds.last_sent:",
    ),
    digest(
        "what is not committed yet counts",
        "            elif record.id > bounds.last_sent:\n                break\n",
        "",
    ),
    digest(
        "a record of another type leaves the reader where it is",
        "                    result.passed += 1\n",
        "                    result.passed += 1\n                    continue\n",
    ),
    digest(
        "a gap is not noticed",
        "if record.prev > result.position:",
        "if False:",
    ),
    digest(
        "a gap of one ride is not noticed",
        "if record.prev > result.position:",
        "if record.prev > result.position + 1:",
        tests="fast/test_any_log.py::test_each_ride_counts_once_whatever_the_log_holds",
    ),
    digest(
        "an entry that is no record is read for ever",
        """\
            result.malformed.append(Malformed(entry, in_one_line(reason)))
        except Exception as error:
""",
        """\
            result.malformed.append(Malformed(entry, in_one_line(reason)))
            continue
        except Exception as error:
""",
    ),
    checkpoint(
        "the checkpoint moves from whatever version it has",
        "AND version = %(from_version)s",
        "",
        tests="services/test_retries.py::"
        "test_no_process_writes_what_it_remembers_over_what_another_has_changed",
    ),
    checkpoint(
        "a checkpoint that is made anew has versions of the one before",
        "extract(epoch FROM clock_timestamp()) * 1000000",
        "0",
        tests="services/test_retries.py::test_nor_over_what_was_made_anew",
    ),
    checkpoint(
        "a retry and a repair leave the version",
        "SET version = version + 1\n",
        "SET version = version\n",
        tests="services/test_retries.py::"
        "test_no_process_writes_what_it_remembers_over_what_another_has_changed",
    ),
    checkpoint(
        "the checkpoint moves from wherever it is",
        "AND last_redis_id = %(from_redis_id)s AND position = %(from_position)s",
        "",
        tests="services/test_consumer.py::"
        "test_a_checkpoint_that_somebody_sets_back_is_moved_from_there",
    ),
    checkpoint(
        "the checkpoint moves from whatever ride it is at",
        "AND last_redis_id = %(from_redis_id)s AND position = %(from_position)s",
        "AND last_redis_id = %(from_redis_id)s",
        tests="services/test_consumer.py::"
        "test_a_checkpoint_that_somebody_sets_back_is_moved_from_there",
    ),
    checkpoint(
        "nobody looks whether the checkpoint moved",
        "if self._connection.execute(MOVE, values).rowcount != 1:",
        "if self._connection.execute(MOVE, values).rowcount > 1:",
        tests="services/test_consumer.py::"
        "test_two_processes_under_one_name_never_count_a_ride_twice",
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
        "the total and the checkpoint move in two transactions",
        "            self._connection.transaction(),\n        ):\n",
        "        ):\n",
        file="unified_log/readers/taking.py",
    ),
    crashes(
        "a crash is counted again by each session",
        "owed, self._owed = self._owed, 0",
        "owed = self._owed",
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
    Mutant(
        "a byte of a name ends in a traceback",
        "(Unavailable, psycopg.Error, UnicodeError)",
        "(Unavailable, psycopg.Error)",
        "consumers/remove.py",
        "services/test_remove.py::test_a_reader_that_is_not_there_is_not_removed",
    ),
    Mutant(
        "minutes outlive their rollup",
        '    "DELETE FROM ride_minutes",\n',
        "",
        "consumers/remove.py",
        "services/test_remove.py::test_the_rollup_goes_with_its_minutes_and_another_begins_anew",
    ),
]
