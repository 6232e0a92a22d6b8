"""The judge of the books: the tables, Redis, the warehouse and the journals must agree."""

from lab.chaos.books import clients, receipts, runs
from lab.chaos.books.tables import most_of
from lab.chaos.evidence import Evidence


def check(evidence: Evidence) -> list[str]:
    """All findings, each a sentence; none if every ride counted once and all else is right."""
    claims = (*clients.CLAIMS, *receipts.CLAIMS, *runs.CLAIMS)
    claimed = [sentence for claim in claims for sentence in most_of(claim(evidence))]
    return [*claimed, *evidence.found]
