"""`python -m consumers.ratings NAME`: reads the log and counts the ratings and their stars.

It guarantees what a total does (`python -m consumers.totals`), in the same way: every rating counts
once, and the sum moves with the checkpoint, in one transaction. A crash leaves the same behind.
"""

from consumers.main import main
from consumers.ratings.stars import Stars

if __name__ == "__main__":
    main(Stars, __doc__, "ratings")
