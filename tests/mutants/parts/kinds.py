"""Mutants of ratings, and of what a kind of record rests on."""

from functools import partial

from tests.mutants.mutant import Mutant

rating = partial(Mutant, file="api/rating.py", tests="services/test_ratings.py")
stars = partial(Mutant, file="consumers/ratings/stars.py", tests="services/test_ratings.py")
handler = partial(
    Mutant, file="unified_log/readers/handler.py", tests="services/test_add_a_kind.py"
)

cell = partial(Mutant, file="unified_log/schema/1_log.sql", tests="services/test_cell.py")

MUTANTS = [
    cell(
        "every cell draws the same ids",
        "        cell_start() + 1, cell_start() + 99999999999999\n",
        "        1, 99999999999999\n",
        tests="services/test_cell.py::test_what_two_cells_say_of_their_rides_is_told_apart",
    ),
    rating(
        "a ride may get other stars",
        "    if found.stars != stars:\n",
        "    if False:\n",
    ),
    rating(
        "a rating that is there is not found",
        "    WHERE ride_id = :ride_id\n",
        "    WHERE ride_id = :ride_id AND false\n",
        tests="services/test_ratings.py::test_of_twenty_requests_at_once_one_rates_the_ride",
    ),
    rating(
        "a primary that was replaced says that there is no ride",
        "        writing.run(connection, AGREED, {})\n",
        "",
        tests="services/test_failover.py::"
        "test_a_primary_without_its_standby_does_not_say_that_a_ride_to_rate_is_not_there",
    ),
    rating(
        "a rating has no staged record",
        """\
    SELECT stars, stage(
        id, 'rating.create', jsonb_build_object('id', id, 'ride_id', ride_id, 'stars', stars),
        :traceparent, :tracestate
    )
""",
        """\
    SELECT stars, concat(CAST(:traceparent AS text), CAST(:tracestate AS text))
""",
    ),
    stars(
        "a gap heals from nothing",
        "ratings WHERE id > %s AND id <= %s",
        "ratings WHERE id > %s AND id < %s",
        tests="services/test_ratings.py::test_rides_and_ratings_in_one_log_each_count_once",
    ),
    stars(
        "any number of stars counts",
        "msgspec.Meta(ge=1, le=5, description",
        "msgspec.Meta(description",
    ),
    handler(
        "a handler never recounts",
        "AND name = %(name)s AND (recount OR EXISTS (",
        "AND name = %(name)s AND (false OR EXISTS (",
    ),
    handler(
        "a recount stays asked for",
        "SET recount = false, resets_applied",
        "SET recount = true, resets_applied",
        tests="services/test_ratings.py",
    ),
    handler(
        "a recount reads whole tables by an index",
        "        self.connection.execute(BY_TABLE)\n",
        "",
        tests="services/test_repair.py::test_a_recount_reads_all_rides_in_the_order_of_their_table",
    ),
    Mutant(
        "every record is a ride's",
        "SELECT id, type, data::text, traceparent",
        "SELECT id, 'ride.create', data::text, traceparent",
        file="unified_log/streamer/drain.py",
        tests="services/test_add_a_kind.py::test_a_kind_that_is_added_while_the_fleet_runs_counts"
        "_through_crashes_and_a_lost_log",
    ),
    Mutant(
        "Spark's sum is not compared",
        "return self.stray or self.off != (0, 0)",
        "return self.stray or self.off[0] != 0",
        file="analytics/result.py",
        tests="analytics/test_ratings_proved.py",
    ),
    Mutant(
        "every consumer is compared with where the last one stands",
        "exact(min(each.position, furthest), held)",
        "exact(furthest, held)",
        file="analytics/proofs/ratings.py",
        tests="analytics/test_ratings_proved.py",
    ),
]
