"""The mechanism imports nothing of the application, and has no word of it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lab.processes import clean_environment
from rocket_rides.settings import PROJECT

SUFFIXES = {".lua", ".md", ".py", ".sql"}
FILES = [path for path in sorted(PROJECT.glob("unified_log/**/*")) if path.suffix in SUFFIXES]
APPLICATIONS = re.compile("(ride|metre|rating|receipt|minute)s?")
# Letters between anything else, and the parts of a name in camel case.
PART = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

IMPORT_ALL = """
import importlib, pkgutil, sys, unified_log
for module in pkgutil.walk_packages(unified_log.__path__, "unified_log."):
    importlib.import_module(module.name)
print(*sys.modules)
"""


def applications(text: str) -> list[str]:
    """The words of the application that a text has."""
    return [part for part in PART.findall(text) if APPLICATIONS.fullmatch(part.lower())]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_no_file_of_the_mechanism_has_a_word_of_the_application(path: Path) -> None:
    assert applications(path.read_text()) == []


@pytest.mark.parametrize(
    "text", ["a ride", "RIDES", "ride_id", "lowestRide", "HealedRides", "'minute'", "RATING_SUM"]
)
def test_a_word_is_found_in_whatever_name_it_is(text: str) -> None:
    assert applications(text)


@pytest.mark.parametrize("text", ["override", "stride", "integrating", "diameter", "minutely"])
def test_a_word_of_which_it_is_only_a_part_is_another(text: str) -> None:
    assert not applications(text)


@pytest.mark.proves("mechanism")
def test_all_of_it_can_be_imported_where_there_is_nothing_else(tmp_path: Path) -> None:
    """Beside the packages that it depends on."""
    (tmp_path / "unified_log").symlink_to(PROJECT / "unified_log")
    said = subprocess.check_output(
        [sys.executable, "-c", IMPORT_ALL], cwd=tmp_path, env=clean_environment(), text=True
    )
    loaded = {name.partition(".")[0] for name in said.split()}
    assert "unified_log" in loaded
    assert not loaded & {"pydantic", "flask", "sqlalchemy", "alembic", "rocket_rides"}
