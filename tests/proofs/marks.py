"""The tests that are marked as proofs, read from their files: no test is imported."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rocket_rides.settings import PROJECT


class Proof(NamedTuple):
    """A test, and the name of the claim that it proves."""

    claim: str
    test: str  # as pytest takes it


def proofs(tests: Path = PROJECT / "tests") -> list[Proof]:
    return [
        Proof(claim, f"{file.relative_to(tests.parent)}::{function.name}")
        for file in sorted(tests.rglob("test_*.py"))
        for function in ast.walk(ast.parse(file.read_text()))
        if isinstance(function, ast.FunctionDef)
        for claim in marks(function)
    ]


def marks(function: ast.FunctionDef) -> Iterator[str]:
    """The names in its marks."""
    for decorator in function.decorator_list:
        match decorator:
            case ast.Call(func=name, args=[ast.Constant(value=str(claim))]) if (
                ast.unparse(name) == "pytest.mark.proves"
            ):
                yield claim
