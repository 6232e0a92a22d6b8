"""What others tell Python by variables is kept from all that make and the Procfile start."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from demo.install.environment import HONCHO
from rocket_rides.settings import PROJECT
from tests.support.foreign import pythons_variables

# How a person's terminal shows text; honcho, too, sets them. A new variable fails the test.
HARMLESS = {"PYTHONUTF8", "PYTHONIOENCODING"}
OTHERS = """
PYTHONASYNCIODEBUG PYTHONBREAKPOINT PYTHONCASEOK PYTHONCOERCECLOCALE PYTHONDEBUG PYTHONDEVMODE
PYTHONDONTWRITEBYTECODE PYTHONDUMPREFS PYTHONDUMPREFSFILE PYTHONEXECUTABLE PYTHONFAULTHANDLER
PYTHONHASHSEED PYTHONHOME PYTHONINSPECT PYTHONINTMAXSTRDIGITS PYTHONMALLOC PYTHONMALLOCSTATS
PYTHONNODEBUGRANGES PYTHONNOUSERSITE PYTHONOPTIMIZE PYTHONPATH PYTHONPERFSUPPORT
PYTHONPLATLIBDIR PYTHONPROFILEIMPORTTIME PYTHONPYCACHEPREFIX PYTHONSAFEPATH PYTHONSTARTUP
PYTHONTRACEMALLOC PYTHONUNBUFFERED PYTHONUSERBASE PYTHONVERBOSE PYTHONWARNDEFAULTENCODING
PYTHONWARNINGS PYTHON_BASIC_REPL PYTHON_COLORS PYTHON_CPU_COUNT PYTHON_FROZEN_MODULES PYTHON_GIL
PYTHON_HISTORY PYTHON_JIT PYTHON_PERF_JIT_SUPPORT PYTHON_PRESITE PYTHON_TLBC
PYTHON_DISABLE_REMOTE_DEBUG PYTHON_CONTEXT_AWARE_WARNINGS PYTHON_THREAD_INHERIT_CONTEXT
"""
ALL = {*HARMLESS, *OTHERS.split()}
SET = (
    os.environ
    | dict.fromkeys(ALL, "/of/another/project")
    | {
        "PYTHONUTF8": "1",
        "PYTHONIOENCODING": "utf-8",
    }
)


def told(command: list[str], folder: Path = PROJECT) -> str:
    return subprocess.check_output(command, cwd=folder, env=SET, text=True)


def names(environment: str) -> set[str]:
    found = {line.partition("=")[0] for line in environment.splitlines()}
    return {name for name in found if name.startswith("PYTHON")}


def test_each_variable_of_python_is_harmless_or_kept_out() -> None:
    assert pythons_variables() - ALL == set()


def test_make_keeps_them_from_what_it_starts_and_has_one_of_its_own() -> None:
    show = ["make", "--no-print-directory", "--eval=show: ; @echo $(PYTHON); env", "show"]
    assert names(told(show)) == HARMLESS
    assert told([*show, "PYTHON=python3.99"]).startswith("python3.99\n")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """One with .venv, in a folder that shells would split."""
    program = tmp_path / "a b" / "ü" / "demo" / "python"
    program.parent.mkdir(parents=True)
    program.write_bytes((PROJECT / "demo/python").read_bytes())
    program.chmod(0o755)
    python = program.parents[1] / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$0" "$@"; env\n')
    python.chmod(0o755)
    return program.parents[1]


def test_the_procfiles_python_is_that_of_its_checkout_without_them(checkout: Path) -> None:
    said = told(["demo/python", "-m", "a name"], checkout)
    assert said.startswith(f"{checkout}/.venv/bin/python -m a name\n")
    assert names(said) == HARMLESS


@pytest.mark.parametrize("program", ["demo/python", ".venv/bin/honcho"])
def test_no_cdpath_leads_to_another_checkout(
    checkout: Path, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / ".venv/bin/honcho").write_text(HONCHO)
    (checkout / ".venv/bin/honcho").chmod(0o755)
    other = checkout.with_name("other")
    shutil.copytree(checkout, other)
    monkeypatch.setitem(SET, "CDPATH", str(other))
    assert told([program], checkout).startswith(f"{checkout}/.venv/bin/python")


def test_where_there_is_no_venv_it_is_that_of_the_path(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So `python -m demo`, which puts its own Python first in PATH, has its processes run by it."""
    (checkout / ".venv" / "bin" / "python").unlink()
    monkeypatch.setitem(SET, "PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    which = told(["demo/python", "-c", "import sys; print(sys.executable)"], checkout)
    assert Path(which.strip()).samefile(sys.executable)


def test_tools_are_started_as_modules_which_no_folders_name_can_break() -> None:
    """A script names its interpreter by its path: of a renamed folder, or in several words."""
    recipes = (PROJECT / "Makefile").read_text()
    assert "$(BIN)/python -m" in recipes
    assert recipes.count("$(BIN)/") == recipes.count("$(BIN)/python ")
    assert "CURDIR" not in recipes
