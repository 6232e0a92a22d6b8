"""Finds what in the evidence of a run contradicts the guarantee. A finding is a sentence."""

from lab.chaos.books import clients, nights, receipts
from lab.chaos.books.tables import most_of
from lab.chaos.evidence import Evidence

CLAIMS = (*clients.CLAIMS, *receipts.CLAIMS, *nights.CLAIMS)


def check(evidence: Evidence) -> list[str]:
    """All findings; none if every ride counted once, in order, and nothing else broke."""
    claimed = [sentence for claim in CLAIMS for sentence in most_of(claim(evidence))]
    return [*claimed, *evidence.tables, *evidence.errors]
