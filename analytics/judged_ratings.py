"""The consumers of ratings: which are to recount, what is held, and whether new ratings are."""

from collections.abc import Sequence

from analytics import findings, votes
from analytics.findings import Finding
from analytics.judgement import Judgement
from analytics.result import CountedRatings, RatingsVerdict
from analytics.votes import Counted


def judged(
    judgement: Judgement, verdict: RatingsVerdict
) -> tuple[list[CountedRatings], list[Finding]]:
    """The consumers that are to recount, and what is found of ratings."""
    changed = [
        Finding(
            findings.RATINGS_CHANGED,
            f"the ratings {was.after + 1} to {was.upto} were changed: {was.ratings} with"
            f" {was.stars} stars before, {ratings} with {stars} stars now",
            True, f"{was.upto} {was.ratings} {was.stars} {ratings} {stars}",
        )
        for was, ratings, stars in verdict.changed
    ]  # fmt: skip
    counted = _counted(verdict.consumers)
    upto = votes.confirmed_upto(counted, judgement.remembered["ratings"])
    doubted = bool(changed) or judgement.distrusts_postgres
    wrong = [
        (each, judgement.approved or (confirmed and not doubted))
        for each, confirmed in zip(
            verdict.consumers, votes.may_be_reset(counted, upto), strict=True
        )
        if each in verdict.wrong
    ]
    found = [findings.of_ratings(each, held=not may) for each, may in wrong]
    return [each for each, may in wrong if may], [*changed, *found]


def denied(judgement: Judgement, verdict: RatingsVerdict | None) -> bool:
    """Whether new ratings are others than somebody has counted: perhaps they are put back."""
    rated = judgement.evidence.known.ledger.ratings
    if judgement.approved or not verdict:
        return False
    known = rated[-1].upto if rated else 0
    upto = votes.confirmed_upto(_counted(verdict.consumers), known)
    return votes.denied(verdict.consumers, upto)


def proven(judgement: Judgement, verdict: RatingsVerdict | None) -> int:
    """How far a consumer of ratings has ever agreed, by this run or an earlier one."""
    before = judgement.remembered["ratings"]
    if not judgement.is_proven or not verdict or verdict.changed:
        return before
    return votes.confirmed_upto(_counted(verdict.consumers), before)


def _counted(consumers: Sequence[CountedRatings]) -> list[Counted]:
    return [
        Counted(each.position, each.off, each.exact_ratings, each.stray, each.first_held_out)
        for each in consumers
    ]
