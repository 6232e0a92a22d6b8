"""The list of mutants fits the code, and who notices one is told from who does not."""

import re
from pathlib import Path

import pytest

from rocket_rides.settings import PROJECT
from tests.mutants import __main__ as mutants
from tests.mutants.lies import MUTANTS
from tests.mutants.mutant import Mutant, Stale
from tests.mutants.tree import HUNG, Tree, Verdict

CODE = "def double(number: int) -> int:\n    return 2 * number\n"
TEST = (
    "from doubling import double\n\ndef test_one_is_doubled() -> None:\n    assert double(1) == 2\n"
)
NAME = "tests/test_doubling.py::test_one_is_doubled"


def lie(new: str, old: str = "2 * number", explained: str = "") -> Mutant:
    return Mutant("it does not double", old, new, "doubling.py", "test_doubling.py", explained)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The smallest one that has something to be wrong about."""
    project = tmp_path / "project"
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take longer than the test
    (project / "tests").mkdir(parents=True)
    (project / "doubling.py").write_text(CODE)
    (project / "tests/test_doubling.py").write_text(TEST)
    return project


def test_each_lie_is_about_code_that_is_there_once() -> None:
    stale = []
    for mutant in MUTANTS:
        try:
            mutant.told_in((PROJECT / mutant.file).read_text())
        except Stale as reason:
            stale.append(str(reason))
    assert stale == []
    assert len(MUTANTS) > 100


def test_each_lie_is_told_once_and_to_tests_that_are_there() -> None:
    assert len({(mutant.file, mutant.new, mutant.old) for mutant in MUTANTS}) == len(MUTANTS)
    missing = []
    for name in {name for mutant in MUTANTS for name in mutant.selection}:
        file, _, test = name.partition("::")
        path = PROJECT / file
        if not path.is_file() or (test and f"def {test}(" not in path.read_text()):
            missing.append(name)
    assert missing == []


def test_a_lie_that_fits_no_more_is_stale() -> None:
    for new, old, reason in (
        ("3", "4", "has 0 times"),
        ("3", "number", "has 2 times"),
        ("2 * number", "2 * number", "nothing is changed"),
        ("2 *", "2 * number", "is no Python"),
    ):
        with pytest.raises(Stale, match=re.escape(reason)):
            lie(new, old).told_in(CODE)
    assert lie("3").line(CODE) == 2


def test_a_test_notices_a_lie_or_does_not(project: Path, tmp_path: Path) -> None:
    copy = Tree(project, tmp_path / "copy")
    assert copy.failure(["tests"]) is None
    noticed = copy.test(lie("3 * number"))
    assert (noticed.noticed_by, noticed.why) == (NAME, "assert 3 == 2")
    assert copy.test(lie("2 ** number")).noticed_by == ""  # of the same size, in the same second
    assert copy.test(lie("4 * number")).noticed_by == NAME
    assert (copy.folder / "doubling.py").read_text() == (project / "doubling.py").read_text()


@pytest.mark.parametrize(
    ("noticed_by", "explained", "wrong", "said"),
    [
        (NAME, "", False, "1 killed, 0 explained, 0 survive"),
        ("", "2 * 1 is 2 ** 1", False, "0 killed, 1 explained, 0 survive"),
        ("", "", True, "0 killed, 0 explained, 1 survive"),
        (HUNG, "2 * 1 is 2 ** 1", True, "0 killed, 0 explained, 1 survive"),
        (NAME, "nobody can", True, "1 killed, 0 explained, 0 survive"),
    ],
)
def test_a_survivor_is_explained_or_wrong(
    monkeypatch: pytest.MonkeyPatch,
    project: Path,
    noticed_by: str,
    explained: str,
    wrong: bool,
    said: str,
) -> None:
    monkeypatch.setattr(mutants, "PROJECT", project)
    mutant, verdict = lie("3", explained=explained), Verdict(noticed_by, 1.0)
    if noticed_by == HUNG:
        verdict = Verdict("", 1.0, HUNG)
    assert mutants.is_wrong(mutant, verdict) is wrong
    told = mutants.summary([(mutant, verdict)], 60)
    assert f"1 mutants: {said}" in told
    assert ("doubling.py:2: it does not double" in told) is wrong


def test_a_part_of_them_can_be_chosen() -> None:
    assert {mutant.file for mutant in mutants.chosen(["drain"])} == {"streamer/drain.py"}
    assert len(mutants.chosen([])) == len(MUTANTS)
    with pytest.raises(SystemExit, match="no mutant is about nothing like it"):
        mutants.chosen(["nothing like it"])
