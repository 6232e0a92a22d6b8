"""Lies about the running total and its resets."""

from functools import partial

from tests.mutants.mutant import Mutant

total = partial(Mutant, file="consumers/totals/total.py", tests="services/test_consumer.py")
reset = partial(Mutant, file="consumers/totals/reset.py", tests="services/test_resets.py")

MUTANTS = [
    total(
        "a batch replaces the total",
        "SET total_distance = total_distance + %s",
        "SET total_distance = %s",
    ),
    total(
        "a total that is gone stays where it was, and its checkpoint moves",
        '            raise Overtaken(f"the total of {self.name} is gone")\n',
        "            return\n",
        tests="services/test_consumer.py::test_a_checkpoint_never_moves_without_its_total",
    ),
    total(
        "a total that is gone begins anew in the middle",
        "        row = self.connection.execute(LOAD, [self.name]).fetchone()\n",
        "        row = self.connection.execute(LOAD, [self.name]).fetchone() or (Decimal(0),)\n",
        tests="services/test_broken_by_hand.py::"
        "test_a_total_is_made_with_its_checkpoint_or_not_at_all",
    ),
    total(
        "a batch may be summed with a rounding",
        "with localcontext(EXACT):",
        "with localcontext():",
        explained="Python's own context has 28 digits, and a batch's sum never has more than 25:"
        " a gap of all 2^63 rides of the longest distance would have 31, but no disk holds them",
    ),
    total(
        "a reset that was applied is still asked for",
        "AND status = 'pending')\"",
        'AND status IS NOT NULL)"',
        tests="services/test_resets.py::test_a_reset_is_exact_wherever_the_consumer_stands",
    ),
    total(
        "the ride before a gap is healed again",
        "WHERE id > %s AND id <= %s",
        "WHERE id >= %s AND id <= %s",
        tests="services/test_consumer.py::test_a_log_that_lost_entries_heals",
    ),
    total(
        "the last ride of a gap is not healed",
        "WHERE id > %s AND id <= %s",
        "WHERE id > %s AND id < %s",
        tests="services/test_consumer.py::test_a_log_that_lost_entries_heals",
    ),
    total(
        "a gap whose rides are gone has a length all the same",
        "count(*), coalesce(sum(distance), 0)",
        "count(*), coalesce(sum(distance), 1)",
        tests="services/test_consumer.py::test_a_gap_whose_rides_are_gone_is_healed",
    ),
    reset(
        "a reset may lead past last_sent",
        "min(newest.last_sent, max(newest.reconciled_ride_id, newest.ride_id))",
        "max(newest.reconciled_ride_id, newest.ride_id)",
    ),
    reset(
        "a consumer behind the reconciliation stays there",
        "min(newest.last_sent, max(newest.reconciled_ride_id, newest.ride_id))",
        "min(newest.last_sent, newest.ride_id)",
    ),
    reset(
        "a consumer past the reconciliation goes back to it",
        "min(newest.last_sent, max(newest.reconciled_ride_id, newest.ride_id))",
        "min(newest.last_sent, newest.reconciled_ride_id)",
    ),
    reset(
        "the reconciled ride itself counts twice",
        "WHERE id > %(reconciled_ride_id)s AND id <=",
        "WHERE id >= %(reconciled_ride_id)s AND id <=",
    ),
    reset(
        "the ride at which the consumer stands is left out",
        "AND id <= %(to_ride_id)s",
        "AND id < %(to_ride_id)s",
    ),
    reset(
        "a reset about rides that are still to come is applied",
        "if newest.is_pending and newest.reconciled_ride_id <= newest.last_sent:",
        "if newest.is_pending:",
    ),
    reset(
        "a reset at last_sent itself is taken for one about rides to come",
        "newest.reconciled_ride_id <= newest.last_sent",
        "newest.reconciled_ride_id < newest.last_sent",
    ),
    reset(
        "a reset that was applied is applied again",
        "if newest.is_pending and newest.reconciled_ride_id <= newest.last_sent:",
        "if newest.reconciled_ride_id <= newest.last_sent:",
        tests="services/test_resets.py services/test_resets_at_once.py",
    ),
    reset(
        "the oldest reset is applied",
        "ORDER BY resets.id DESC LIMIT 1",
        "ORDER BY resets.id LIMIT 1",
        tests="services/test_resets.py::test_a_reset_is_applied_once",
    ),
    reset(
        "a reset that nobody has looked at is superseded",
        "AND status = 'pending' AND id <= %s",
        "AND status = 'pending' AND id >= least(%s, 0)",
        tests="services/test_resets_at_once.py",
    ),
    reset(
        "a reset moves every consumer's checkpoint of that name",
        "WHERE kind = 'total' AND name = %(name)s\n",
        "WHERE name = %(name)s\n",
        tests="services/test_resets.py services/test_rollup.py",
    ),
    reset(
        "a reset is not counted",
        "resets_applied = resets_applied + 1",
        "resets_applied = resets_applied",
    ),
]
