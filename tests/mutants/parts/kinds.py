"""Mutants of ratings, and of what a kind of record rests on."""

from functools import partial

from tests.mutants.mutant import Mutant

rating = partial(Mutant, file="api/rating.py", tests="services/test_ratings.py")
stars = partial(Mutant, file="consumers/ratings/stars.py", tests="services/test_ratings.py")
handler = partial(Mutant, file="consumers/handler.py", tests="services/test_add_a_kind.py")

MUTANTS = [
    rating(
        "a ride may get other stars",
        "        if int(found) != stars:\n",
        "        if False:\n",
    ),
    rating(
        "a rating has no staged record",
        "'stars', stars) FROM rating\n        RETURNING ring_doorbell()",
        "'stars', stars) FROM rating WHERE false\n        RETURNING ring_doorbell()",
    ),
    stars(
        "a gap heals from nothing",
        "ratings WHERE id > %s AND id <= %s",
        "ratings WHERE id > %s AND id < %s",
    ),
    stars(
        "any number of stars counts",
        "    if not 1 <= found.stars <= 5:\n",
        "    if False:\n",
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
        "Spark's sum is not compared",
        "if each[2:4] != each[4:6]",
        "if each[2:3] != each[4:5]",
        file="analytics/result.py",
        tests="analytics/test_ratings_proved.py",
    ),
    Mutant(
        "the ratings of one consumer are added to none after it",
        "accumulate(found, lambda a, b: (a[0] + b[0], a[1] + b[1]), initial=(0, 0))",
        "iter([(0, 0), *found])",
        file="analytics/proofs/ratings.py",
        tests="analytics/test_ratings_proved.py",
    ),
]
