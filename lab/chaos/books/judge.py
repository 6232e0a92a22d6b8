"""The judge of the books: what in the evidence of a run contradicts the guarantee."""

from lab.chaos.books import clients, receipts, runs
from lab.chaos.books.tables import most_of
from lab.chaos.evidence import Evidence

CLAIMS = (*clients.CLAIMS, *receipts.CLAIMS, *runs.CLAIMS)


def check(evidence: Evidence) -> list[str]:
    claimed = [sentence for claim in CLAIMS for sentence in most_of(claim(evidence))]
    return [*claimed, *evidence.found]
