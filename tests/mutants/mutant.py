"""A mutant: the code with one small error in it."""

import ast
from typing import NamedTuple


class Stale(ValueError):
    """The mutant no longer fits the code; the message says why."""


class Mutant(NamedTuple):
    """In `file`, the text `old`, which is there once, becomes `new`."""

    error: str  # what is wrong then
    old: str
    new: str
    file: str
    tests: str  # that must notice: files below tests/, or tests in them, between blanks

    def line(self, source: str) -> int:
        """Where in the file it begins. Raises Stale."""
        if (times := source.count(self.old)) != 1:
            raise Stale(f"{self.file} has {times} times, not once: {self.old!r}")
        return source[: source.index(self.old)].count("\n") + 1

    def told_in(self, source: str) -> str:
        """The file's text with the error in it. Raises Stale."""
        self.line(source)
        mutated = source.replace(self.old, self.new)
        if mutated == source:
            raise Stale(f"{self.file}: nothing is changed by {self.new!r}")
        if self.file.endswith(".py"):
            try:
                ast.parse(mutated)
            except SyntaxError as error:
                raise Stale(f"{self.file}: with {self.new!r} it is no Python: {error}") from None
        return mutated

    @property
    def selection(self) -> list[str]:
        """The tests, as pytest takes them."""
        return [f"tests/{name}" for name in self.tests.split()]
