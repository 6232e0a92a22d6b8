"""The ledger as a table, for docs/claims.md."""

from collections.abc import Iterator

from lab.blocks import table
from tests.claims import CLAIMS
from tests.proofs.marks import proofs
from tests.proofs.noticed import mutants

PAGE = "docs/claims.md"
SHOWN = 1  # mutants, for each proof: those with the shortest names


def claims() -> str:
    return table(["guarantee", "mechanism", "proof", "mutants"], rows())


def rows() -> Iterator[list[str]]:
    """A row for each proof, in the order of the claims."""
    found = proofs()
    for name, claim in CLAIMS.items():
        guarantee = claim.guarantee
        for proof in found:
            if proof.claim == name:
                errors = sorted(mutants(claim, proof), key=len)
                told = f"{len(errors)}: {'; '.join(errors[:SHOWN])}"
                yield [guarantee, f"`{claim.mechanism}`", f"`{proof.test}`", told]
                guarantee = claim.again
