"""Mutants of the running total and its resets."""

from functools import partial

from tests.mutants.mutant import Mutant

total = partial(Mutant, file="consumers/totals/total.py", tests="services/test_consumer.py")
reset = partial(Mutant, file="consumers/totals/reset.py", tests="services/test_resets.py")

MUTANTS = [
    total(
        "the ride before a gap is healed again",
        "0) FROM rides WHERE id > %s AND id <= %s",
        "0) FROM rides WHERE id >= %s AND id <= %s",
        tests="services/test_consumer.py::test_a_log_that_lost_entries_heals",
    ),
    total(
        "the last ride of a gap is not healed",
        "0) FROM rides WHERE id > %s AND id <= %s",
        "0) FROM rides WHERE id > %s AND id < %s",
        tests="services/test_consumer.py::test_a_log_that_lost_entries_heals",
    ),
    reset(
        "a reset may lead past last_sent",
        "min(newest.last_sent, max(newest.reconciled_upto, newest.position))",
        "max(newest.reconciled_upto, newest.position)",
    ),
    reset(
        "a consumer behind the reconciliation stays there",
        "min(newest.last_sent, max(newest.reconciled_upto, newest.position))",
        "min(newest.last_sent, newest.position)",
    ),
    reset(
        "a consumer past the reconciliation goes back to it",
        "min(newest.last_sent, max(newest.reconciled_upto, newest.position))",
        "min(newest.last_sent, newest.reconciled_upto)",
    ),
]
