"""Which mutants a proof has noticed, as `tests/mutants/noticed.txt` has it on record."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from rocket_rides.settings import PROJECT
from tests.claims import Claim
from tests.proofs.marks import Proof

RECORD = PROJECT / "tests/mutants/noticed.txt"
LINE = re.compile(r"^(\S+): (.+): (tests/[^\s\[]+)", re.MULTILINE)


class Noticed(NamedTuple):
    file: str
    error: str
    test: str


def record() -> Iterator[Noticed]:
    """Each mutant with the test that noticed it, without that test's parameters."""
    return (Noticed(*found) for found in LINE.findall(RECORD.read_text()))


def mutants(claim: Claim, proof: Proof) -> list[str]:
    """Those of the claim's mechanism that the proof has noticed."""
    return [
        noticed.error
        for noticed in record()
        if (noticed.file, noticed.test) == (claim.mechanism, proof.test)
    ]
