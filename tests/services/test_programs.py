"""Each program says what it does, and does nothing else, when it is asked for its options."""

import re
from pathlib import Path

import pytest

from lab.entries import exceptions, pages
from lab.processes import clean_environment
from rocket_rides.settings import PROJECT
from tests.support.forks import Process
from tests.support.world import PATIENCE

PROGRAMS = [command.text.split()[2] for command in pages.programs(PROJECT)]
# Programs that become others, and tell of those.
OTHERS = {
    "demo.honcho": "honcho",
    "demo.nightly": "python -m analytics.nightly",
}


def test_the_programs_are_those_that_docstrings_name() -> None:
    files = set(PROJECT.glob("[a-z]*/**/*.py")) - set(PROJECT.glob("tests/support/**/*.py"))
    docstrings = (path.read_text()[:200] for path in files)
    named = {name for text in docstrings for name in re.findall(r'^"""`python -m ([\w.]+)', text)}
    named -= {"module"}
    assert named <= set(PROGRAMS)


@pytest.mark.parametrize(
    "program",
    [name for name in PROGRAMS if not exceptions.why_not(f"python -m {name} --help", bool)],
)
def test_a_program_that_is_asked_for_its_options_does_nothing_else(
    program: str, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    environment = clean_environment() | {"DATA_DIR": str(tmp_path)}
    process = Process(program, ["--help"], environment, output)
    assert process.wait(PATIENCE) == 0, output.read_text()
    name = OTHERS.get(program, f"python -m {program}")
    assert output.read_text().startswith(f"usage: {name} ")
