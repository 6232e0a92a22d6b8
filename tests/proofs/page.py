"""The ledger as a table, for docs/claims.md."""

from collections.abc import Iterator

from lab.blocks import table
from tests.claims import CLAIMS
from tests.proofs.marks import proofs
from tests.proofs.noticed import mutants

PAGE = "docs/claims.md"


def claims() -> str:
    return table(["guarantee", "mechanism", "proof", "mutants"], rows())


def rows() -> Iterator[list[str]]:
    """A row for each proof, in the order of the claims, with the number of mutants it noticed."""
    found = proofs()
    for name, claim in CLAIMS.items():
        guarantee = claim.guarantee
        for proof in found:
            if proof.claim == name:
                noticed = str(len(mutants(claim, proof)))
                yield [guarantee, f"`{claim.mechanism}`", f"`{proof.test}`", noticed]
                guarantee = claim.again
