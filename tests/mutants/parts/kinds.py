"""Mutants of ratings, and of what a kind of record rests on."""

from functools import partial

from tests.mutants.mutant import Mutant

rating = partial(Mutant, file="api/rating.py", tests="services/test_ratings.py")
stars = partial(Mutant, file="consumers/ratings/stars.py", tests="services/test_ratings.py")
handler = partial(
    Mutant, file="unified_log/readers/handler.py", tests="services/test_add_a_kind.py"
)

cell = partial(Mutant, file="migrations/versions/0010_schema.py", tests="services/test_cell.py")

MUTANTS = [
    cell(
        "every cell draws the same ids",
        """{"first": cell * CELL_SIZE + 1,""",
        """{"first": 1,""",
        tests="services/test_cell.py::test_what_two_cells_say_of_their_rides_is_told_apart",
    ),
    rating(
        "a ride may get other stars",
        "    if int(found) != stars:\n",
        "    if False:\n",
    ),
    rating(
        "a rating that is there is not found",
        "'replay', '') WHERE ride_id = $1\n",
        "'replay', '') WHERE ride_id = $1 AND false\n",
        tests="services/test_ratings.py::test_of_twenty_requests_at_once_one_rates_the_ride",
    ),
    rating(
        "a rating has no staged record",
        "        FROM rating RETURNING ring_doorbell()",
        "        FROM rating WHERE false RETURNING ring_doorbell()",
    ),
    stars(
        "a gap heals from nothing",
        "ratings WHERE id > %s AND id <= %s",
        "ratings WHERE id > %s AND id < %s",
        tests="services/test_ratings.py::test_rides_and_ratings_in_one_log_each_count_once",
    ),
    stars(
        "any number of stars counts",
        "Annotated[int, msgspec.Meta(ge=1, le=5)]",
        "int",
    ),
    handler(
        "a handler never recounts",
        "AND name = %s AND recount)",
        "AND name = %s AND false)",
    ),
    handler(
        "a recount stays asked for",
        "SET recount = false, resets_applied",
        "SET recount = true, resets_applied",
        tests="services/test_ratings.py",
    ),
    Mutant(
        "every record is a ride's",
        "object || '.' || action AS type",
        "'ride.create' AS type",
        file="unified_log/streamer/drain.py",
        tests="services/test_add_a_kind.py::test_a_kind_that_is_added_while_the_fleet_runs_counts"
        "_through_crashes_and_a_lost_log",
    ),
    Mutant(
        "Spark's sum is not compared",
        "or each[2:4] != each[5:7]",
        "or each[2:3] != each[5:6]",
        file="analytics/result.py",
        tests="analytics/test_ratings_proved.py",
    ),
    Mutant(
        "every consumer is compared with where the last one stands",
        "exact(min(row[1], furthest), held)",
        "exact(furthest, held)",
        file="analytics/proofs/ratings.py",
        tests="analytics/test_ratings_proved.py",
    ),
]
