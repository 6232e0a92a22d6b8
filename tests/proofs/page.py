"""The ledger as a table, for docs/claims.md."""

from collections.abc import Iterator

from lab.blocks import table
from tests.claims import CLAIMS
from tests.proofs.marks import proofs
from tests.proofs.noticed import mutants

PAGE = "docs/claims.md"


def claims() -> str:
    return table(["guarantee", "mechanism", "proof", "noticed"], rows())


def rows() -> Iterator[list[str]]:
    """A row for each proof, in the order of the claims, with its mutant of the shortest name."""
    found = proofs()
    for name, claim in CLAIMS.items():
        guarantee = claim.guarantee
        for proof in found:
            if proof.claim == name:
                errors = sorted(mutants(claim, proof), key=len)
                told = errors[0] + (f" +{len(errors) - 1}" if errors[1:] else "") if errors else ""
                yield [guarantee, f"`{claim.mechanism}`", f"`{proof.test}`", told]
                guarantee = claim.again
