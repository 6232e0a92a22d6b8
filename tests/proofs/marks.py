"""The tests that are marked as proofs, read from their files: no test is imported."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rocket_rides.settings import PROJECT

# A mark, or the test to which the marks above it belong.
MARK_OR_TEST = re.compile(r'^@pytest\.mark\.proves\("(.+)"\)$|^def (test_\w+)\(', re.MULTILINE)


class Proof(NamedTuple):
    """A test, and the name of the claim that it proves."""

    claim: str
    test: str  # as pytest takes it


def proofs(tests: Path = PROJECT / "tests") -> list[Proof]:
    return [proof for file in sorted(tests.rglob("test_*.py")) for proof in marked(file, tests)]


def marked(file: Path, tests: Path) -> Iterator[Proof]:
    """The proofs in one file."""
    claims: list[str] = []
    for claim, test in MARK_OR_TEST.findall(file.read_text()):
        if claim:
            claims.append(claim)
            continue
        for each in claims:
            yield Proof(each, f"{file.relative_to(tests.parent)}::{test}")
        claims = []
