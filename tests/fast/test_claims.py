"""The ledger of claims balances: each has one proof, and each proof has noticed what it must."""

import re
from collections import Counter

import pytest

from rocket_rides.settings import PROJECT
from tests.claims import CLAIMS
from tests.proofs.marks import Proof, proofs
from tests.proofs.noticed import mutants

PROOFS = proofs()
STATEMENT = re.compile(r"^(\d+)\. ", re.MULTILINE)


def test_each_claim_has_a_proof_and_each_proof_a_claim() -> None:
    assert {proof.claim for proof in PROOFS} == CLAIMS.keys()


def test_a_claim_has_a_second_proof_only_where_it_says_why() -> None:
    proven = Counter(proof.claim for proof in PROOFS)
    several = {name for name, number in proven.items() if number > 1}
    assert several == {name for name, claim in CLAIMS.items() if claim.again}


@pytest.mark.parametrize("name", CLAIMS)
def test_the_mechanism_of_a_claim_is_there(name: str) -> None:
    assert (PROJECT / CLAIMS[name].mechanism).is_file()


@pytest.mark.parametrize("proof", PROOFS, ids=str)
def test_a_proof_has_noticed_mutants_of_its_mechanism(proof: Proof) -> None:
    assert mutants(CLAIMS[proof.claim], proof) != []


def test_each_statement_of_the_guarantees_has_a_claim() -> None:
    page = (PROJECT / "docs/guarantees.md").read_text()
    statements = {int(number) for number in STATEMENT.findall(page)}
    assert statements
    assert {claim.statement for claim in CLAIMS.values()} - {0} == statements
