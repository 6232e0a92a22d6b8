"""The list of mutants fits the code, and who notices one is told from who does not."""

from pathlib import Path

import pytest

from rocket_rides.settings import PROJECT
from tests.mutants.mutant import Mutant, Stale
from tests.mutants.parts import MUTANTS
from tests.mutants.tree import Tree

CODE = "def double(number: int) -> int:\n    return 2 * number\n"
TEST = (
    "from doubling import double\n\ndef test_one_is_doubled() -> None:\n    assert double(1) == 2\n"
)
NAME = "tests/test_doubling.py::test_one_is_doubled"


def doubling(new: str) -> Mutant:
    return Mutant("it does not double", "2 * number", new, "doubling.py", "test_doubling.py")


def test_each_mutant_is_about_code_that_is_there_once() -> None:
    stale = []
    for mutant in MUTANTS:
        try:
            mutant.line((PROJECT / mutant.file).read_text())
        except Stale as reason:
            stale.append(str(reason))
    assert stale == []


def test_each_mutant_is_there_once_and_names_tests_that_are_there() -> None:
    assert len({(mutant.file, mutant.new, mutant.old) for mutant in MUTANTS}) == len(MUTANTS)
    missing = []
    for name in {name for mutant in MUTANTS for name in mutant.selection}:
        file, _, test = name.partition("::")
        path = PROJECT / file
        if not path.is_file() or (test and f"def {test}(" not in path.read_text()):
            missing.append(name)
    assert missing == []


def test_a_test_notices_a_mutant_or_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take longer than the test
    project = tmp_path / "project"
    (project / "tests").mkdir(parents=True)
    (project / "doubling.py").write_text(CODE)
    (project / "tests/test_doubling.py").write_text(TEST)
    copy = Tree(project, tmp_path / "copy")
    noticed = copy.test(doubling("3 * number"))
    assert (noticed.noticed_by, noticed.why) == (NAME, "assert 3 == 2")
    assert (
        copy.test(doubling("2 ** number")).noticed_by == ""
    )  # of the same size, in the same second
    assert (copy.folder / "doubling.py").read_text() == CODE
