"""Mutants of the deadlines of sessions with a server that is frozen."""

from functools import partial

from tests.mutants.mutant import Mutant

SESSIONS, FLEET = "services/test_deadlines.py::", "services/test_frozen_servers.py::"
FROZEN = SESSIONS + "test_nothing_waits_for_a_server_that_is_frozen"
session = partial(Mutant, file="unified_log/deadline.py", tests=FROZEN)
api = partial(Mutant, file="api/database.py")
night = partial(
    Mutant,
    file="analytics/asking.py",
    tests="analytics/test_frozen_night.py::"
    "test_a_run_does_not_wait_for_a_server_that_froze_while_tasks_read",
)

MUTANTS = [
    session(
        "a session waits for a frozen server",
        "            return super().wait(gen, interval, patience)\n        except",
        "            return super().wait(gen, interval, None)\n        except",
    ),
    session(
        "a session of an event loop waits for a frozen server",
        "            return await super().wait(gen, interval, patience)\n        except",
        "            return await super().wait(gen, interval, None)\n        except",
    ),
    session(
        "an event loop stands still while a frozen server is asked",
        "await asyncio.to_thread(_why_none, self)",
        "_why_none(self)",
    ),
    session(
        "a session that is cut stays open",
        "        session.pgconn.finish()  # else a pool would hand it out again\n",
        "",
    ),
    session(
        "a commit that waits for its standby is cut",
        "if past and not waits_for_standby:",
        "if past:",
        tests=SESSIONS + "test_a_commit_waits_for_its_standby_beyond_its_deadline",
    ),
    session(
        "who waits for notifications is cut",
        "CASE WHEN state = 'active' THEN",
        "CASE WHEN true THEN",
        tests=SESSIONS + "test_who_waits_for_notifications_is_not_cut",
    ),
    session(
        "a statement without a limit is cut",
        "bool(backend.limit and since and since",
        "bool(since and since",
        tests=SESSIONS + "test_a_statement_without_a_limit_goes_on_while_the_server_answers",
    ),
    session(
        "a process that hangs past its limit is waited for",
        "    if past and",
        "    if False and",
        tests=SESSIONS
        + "test_a_process_that_hangs_past_the_limit_is_cut_though_the_server_answers",
    ),
    session(
        "a full pool is taken for a frozen server",
        "if timed_out and logged_in and pooled:",
        "if False:",
        tests="analytics/test_pgbouncer.py::test_behind_a_full_pool_a_long_statement_goes_on",
    ),
    session(
        "a full server is taken for a frozen one",
        "if timed_out or not _is_there(there):",
        "if True:",
        tests=SESSIONS + "test_a_full_server_is_there",
    ),
    session(
        "another server's process of the same number is taken for this session's",
        "if row is None or backend.started not in (None, row[0]):",
        "if row is None:",
        tests=SESSIONS
        + "test_another_servers_process_of_the_same_number_is_not_taken_for_this_one",
    ),
    session(
        "an answer that came while the server was asked is dropped",
        "    if not poll.poll(0):\n",
        "    if True:\n",
        tests=SESSIONS + "test_an_answer_that_came_while_the_server_was_asked_is_taken",
    ),
    api(
        "the API's sessions have no deadline",
        "    return Session.connect(*given, **named)",
        "    return None",
        tests=FLEET + "test_a_fleet_says_so_in_time_and_goes_on_with_the_server_that_took_over",
    ),
    api(
        "each session of a worker waits for the same frozen server",
        "context.invalidate_pool_on_disconnect = isinstance(error, NoAnswer)",
        "context.invalidate_pool_on_disconnect = False",
        tests=FLEET + "test_a_fleet_says_so_in_time_and_goes_on_with_the_server_that_took_over",
    ),
    night(
        "tasks of the nightly job wait for a frozen server",
        "                    spark.cancelJobGroup(JOBS)  # and those that began since\n",
        "                    pass\n",
    ),
]
