"""What make installs before it runs a program is all that the program imports."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from demo.install import environment
from rocket_rides.settings import PROJECT

RECIPES = dict(re.findall(r"^([a-z-]+):\n((?:\t.*\n)+)", (PROJECT / "Makefile").read_text(), re.M))
# Each module that make runs, and the parts that are installed before it.
RUN = sorted(
    (module, parts)
    for recipe in RECIPES.values()
    for parts in re.findall(r"\$\(INSTALL\) ([a-z ]+)", recipe)[:1]
    for module in re.findall(r"-m ([\w.]+)", recipe.replace(f"-m demo.install {parts}", ""))
    if (PROJECT / module.split(".")[0]).is_dir() and module != "demo.install"
)
# `make fleet` is honcho, which runs these.
RUN += [
    (module, "fleet")
    for module in re.findall(r"-m ([\w.]+)", (PROJECT / "Procfile").read_text())
    if module != "demo.nightly"  # it installs what it needs
]
OURS = {path.parent.name for path in PROJECT.glob("*/__init__.py")}
DISTRIBUTIONS = packages_distributions()


def file_of(module: str) -> Path | None:
    path = Path(PROJECT, *module.split("."))
    package, file = path / "__init__.py", path.with_suffix(".py")
    return package if package.exists() else file if file.exists() else None


def imports(body: list[ast.stmt]) -> Iterator[str]:
    """What is imported as soon as these statements run: modules, and what is taken from them."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from imports(node.body + node.orelse)


@cache
def direct(file: Path) -> list[str]:
    return list(imports(ast.parse(file.read_text()).body))


def packages(files: list[Path]) -> set[str]:
    """The packages, by their names in the locks, that these files import, and what they import."""
    seen, todo, found = set(files), list(files), set()
    while todo:
        for name in direct(todo.pop()):
            parts = name.split(".")
            if parts[0] not in OURS:
                found.update(DISTRIBUTIONS.get(parts[0], []))
                continue
            for length in range(1, len(parts) + 1):
                file = file_of(".".join(parts[:length]))
                if file and file not in seen:
                    seen.add(file)
                    todo.append(file)
    return {re.sub(r"[-_.]+", "-", name).lower() for name in found}


def locked(parts: str) -> set[str]:
    return {
        name
        for part in parts.split()
        if part in environment.LOCKS
        for name in re.findall(
            r"^([\w.-]+)==",
            (PROJECT / "requirements" / environment.LOCKS[part]).read_text(),
            re.MULTILINE,
        )
    }


def begins(module: str) -> list[Path]:
    path = Path(PROJECT, *module.split("."))
    return [path / "__main__.py"] if path.is_dir() else [path.with_suffix(".py")]


@pytest.mark.parametrize(("module", "parts"), RUN)
def test_all_that_a_program_imports_is_installed_before(module: str, parts: str) -> None:
    assert packages(begins(module)) - locked(parts) == set()


def test_all_that_the_fast_tests_import_is_in_the_smallest_lock() -> None:
    files = [*PROJECT.glob("tests/fast/*.py"), *PROJECT.glob("tests/*.py")]
    assert packages(files) - locked("fast") == set()


def test_a_program_that_imports_more_would_be_noticed() -> None:
    assert "pytest" in packages([Path(__file__)]) - locked("nightly")
