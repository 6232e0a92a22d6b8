"""Mutants of the Ick: its script, and what an owner remembers; more are with the rollup's."""

from functools import partial

from tests.mutants.mutant import Mutant

ICK = "services/test_ick.py"
STORY = f"{ICK}::test_a_story_through_every_kind_of_client"
LIMITS = "services/test_ick_limits.py"
OWNED = "services/test_ick_owned.py"
NOTICED = (
    f"{OWNED}::test_every_operation_notices_a_change_and_changes_nothing_and_so_does_each_after_it"
)

script = partial(Mutant, file="consumers/rollup/ick.lua", tests=ICK)
owned = partial(Mutant, file="consumers/rollup/ick.lua", tests=NOTICED)
python = partial(Mutant, file="consumers/rollup/ick.py", tests="fast/test_ick_arguments.py")

MUTANTS = [
    script(
        "an addition raises a score",
        "call('ZADD', pset, 'LT', 'CH', ",
        "call('ZADD', pset, 'CH', ",
        tests=STORY,
    ),
    script(
        "a move raises a score",
        "call('ZADD', to, 'LT', ",
        "call('ZADD', to, ",
        tests=f"{ICK}::test_a_member_keeps_its_lowest_score_in_each_set_and_when_it_moves",
    ),
    script(
        "a reservation takes the highest",
        "call('ZPOPMIN', from, count)",
        "call('ZPOPMAX', from, count)",
    ),
    script(
        "a reservation takes its size beside what is reserved",
        "min(size - call('ZCARD', to), LIMIT / 2)",
        "min(size, LIMIT / 2)",
        tests=STORY,
    ),
    script(
        "a backwash changes nothing",
        "if ARGV[4] == 'backwash' then",
        "if false then",
        tests=STORY,
    ),
    script(
        "more is told than was asked for",
        "min(size, call('ZCARD', cset)) - 1",
        "call('ZCARD', cset) - 1",
    ),
    script(
        "one command has as many arguments as the call",
        "local LIMIT = 4000",
        "local LIMIT = 100000",
        tests=f"{LIMITS}::test_thousands_of_pairs_and_members_in_one_call",
    ),
    script(
        "a full Redis stops the consumer",
        "local size, committed = tonumber(ARGV[3]), 0\n",
        "call('SET', version_key, VERSION)\n  local size, committed = tonumber(ARGV[3]), 0\n",
        tests=f"{LIMITS}::test_a_full_redis_refuses_additions_whole_and_lets_the_consumer_go_on",
    ),
    script(
        "another version passes",
        "call('GET', version_key) ~= VERSION and",
        "call('GET', version_key) == '' and",
        tests=f"{ICK}::test_what_is_no_ick_is_refused_by_every_operation_and_stays_as_it_is",
    ),
    script(
        "sets without a version pass",
        "(producers ~= 'none' or consumers ~= 'none') and",
        "(producers ~= 'none') and",
        tests=f"{ICK}::test_what_is_no_ick_is_refused_by_every_operation_and_stays_as_it_is",
    ),
    owned(
        "an owned Ick is not looked at",
        "(wrong or state() ~= expected)",
        "wrong",
    ),
    owned(
        "a lost producer set passes",
        "count, call('ZCARD', pset), call('ZCARD', cset) }",
        "count, 0, call('ZCARD', cset) }",
    ),
    owned(
        "a lost consumer set passes",
        "count, call('ZCARD', pset), call('ZCARD', cset) }",
        "count, call('ZCARD', pset), 0 }",
    ),
    owned(
        "a commit does not count as a write",
        "wrote = wrote or committed > 0",
        "wrote = wrote or false",
        tests=f"{OWNED}::test_each_operation_that_changes_something_counts_as_one",
    ),
    owned(
        "a move does not count as a write",
        "unpack(taken))\n    wrote = true\n",
        "unpack(taken))\n",
        tests=f"{OWNED}::test_an_older_state_that_is_restored_is_noticed_whichever_it_is",
    ),
    owned(
        "a score that got lower does not count as a write",
        "wrote = wrote or changed > 0",
        "wrote = wrote or call('ZCARD', pset) > before",
        tests=f"{OWNED}::test_an_older_state_that_is_restored_is_noticed_whichever_it_is",
    ),
    owned(
        "what changes nothing is a write",
        "if wrote and writes then",
        "if writes then",
        tests=f"{OWNED}::test_what_changes_nothing_is_no_write",
    ),
    owned(
        "a deletion leaves the count",
        "call('UNLINK', unpack(KEYS))",
        "call('UNLINK', version_key, pset, cset)",
        tests=f"{OWNED}::test_deleting_asks_nothing_takes_all_keys_and_whoever_goes_on_is_refused",
    ),
    python(
        "an owned Ick is known though its last operation failed",
        "self._left[ick_key] = None  # until the reply is here",
        "pass",
        tests="fast/test_ick_arguments.py::"
        "test_an_owned_ick_is_lost_once_an_operation_failed_and_no_other_is",
    ),
    python(
        "a thread begins anew an Ick that another has deleted",
        'if operation != "delete":',
        "if True:",
        tests=f"{OWNED}::test_deleting_asks_nothing_takes_all_keys_and_whoever_goes_on_is_refused",
    ),
    python(
        "an operation under way is taken for one that failed",
        "with self._lock:  # until",
        "if True:  # until",
        tests=f"{OWNED}::"
        "test_an_operation_under_way_is_waited_for_and_not_taken_for_one_that_failed",
    ),
    python(
        "two threads ask at once",
        "with self._lock:\n            expected",
        "if True:\n            expected",
        tests=f"{OWNED}::test_two_threads_share_an_owned_ick",
    ),
    python(
        "a score is rounded",
        "if double != score:",
        "if double != double:",
    ),
]
