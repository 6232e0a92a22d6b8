"""The ledger as a table, for docs/claims.md."""

from collections.abc import Iterator

from lab.blocks import table
from tests.claims import CLAIMS
from tests.proofs.marks import proofs

PAGE = "docs/claims.md"


def claims() -> str:
    return table(["guarantee", "mechanism", "proof"], rows())


def rows() -> Iterator[list[str]]:
    """A row for each proof, in the order of the claims."""
    found = proofs()
    for name, claim in CLAIMS.items():
        guarantee = claim.guarantee
        for proof in found:
            if proof.claim == name:
                yield [guarantee, f"`{claim.mechanism}`", f"`{proof.test}`"]
                guarantee = claim.again
