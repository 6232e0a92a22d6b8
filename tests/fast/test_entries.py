"""What the pages tell a person to type is read from them, can be tried, and names what there is."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lab.entries import exceptions, pages, visits
from lab.entries.copies import Copy
from lab.entries.pages import Command
from rocket_rides.settings import PROJECT
from tests.support.pages import MODULE, TARGET, is_program, targets

FOUND = pages.everything(PROJECT)
VISITS = list(visits.visits(FOUND))
COMMANDS = [command for commands in FOUND.values() for command in commands]
TYPED = [command for command in COMMANDS if command.text != "^C" and not command.saved]
RECIPES = dict(re.findall(r"^([a-z-]+):\n((?:\t.*\n)+)", (PROJECT / "Makefile").read_text(), re.M))
PROCESSES = set(re.findall(r"^(\w+):", (PROJECT / "Procfile").read_text(), re.M))

PAGE = PROJECT / "docs/first-hour.md"
ADDED = {
    "```sh\nmake new ARGS=--now   # and look\n```": "make new ARGS=--now",
    "```console\n$ python -m new\nit says so\n```": "python -m new",
    "```\nmake new\n```": "make new",
    "```sh\nmake new \\\n    ARGS=--now\n```": "make new \\\n    ARGS=--now",
    "Then `make new` shows it.": "make new",
    "Then `.venv/bin/honcho start\napi` shows it.": ".venv/bin/honcho start api",
}


@pytest.mark.parametrize(("added", "read"), ADDED.items())
def test_a_command_that_is_added_to_a_page_is_tried_in_its_place(added: str, read: str) -> None:
    before, after = PAGE.read_text().split("## Reconcile")
    text = f"{before}\n{added}\n\n## Reconcile{after}"
    found = FOUND | {"docs/first-hour.md": pages.markdown(text, PAGE, PROJECT)}
    [visit] = [visit for visit in visits.visits(found) if visit.name == "docs/first-hour.md"]
    texts = [command.text for command in visit.commands]
    assert texts.index("make fleet") < texts.index(read) < texts.index("make reconcile")


def test_every_command_is_tried_somewhere() -> None:
    tried = {command.text for visit in VISITS for command in visit.commands}
    assert {visits.as_typed(command).text for command in TYPED} <= tried


def test_nothing_that_needs_a_fleet_is_tried_before_there_is_one() -> None:
    for visit in VISITS:
        there = False
        for command in visit.commands:
            there |= bool(re.search(exceptions.FLEET, command.text))
            needs = re.search(exceptions.NEEDS_FLEET, command.text)
            assert there or not needs or exceptions.why_not(command.text, lambda _: True)


@pytest.mark.parametrize(
    "pattern", [*exceptions.NOT_TRIED, *exceptions.LASTS.split("|"), *exceptions.FLEET.split("|")]
)
def test_no_exception_outlives_its_command(pattern: str) -> None:
    assert any(re.search(pattern, command.text) for command in TYPED)


@pytest.mark.parametrize(("page", "text"), exceptions.STATUSES)
def test_a_status_that_is_expected_is_that_of_a_command_in_its_page(page: str, text: str) -> None:
    times = sum(command.text == text for command in FOUND[page])
    assert times == len(exceptions.STATUSES[page, text])


OTHERS = {"long_rides", "orders.takings"}  # programs that the reader of a page writes


def program(command: Command) -> str:
    """The module that a command runs; empty if none of ours."""
    recipe = [RECIPES.get(target, "") for target in TARGET.findall(command.text)]
    ours = [name for name in MODULE.findall(" ".join([command.text, *recipe])) if is_program(name)]
    return ours[-1] if ours else ""


def sources(module: str) -> list[Path]:
    path = Path(PROJECT, *module.split("."))
    return [path.with_suffix(".py")] if path.with_suffix(".py").exists() else [*path.rglob("*.py")]


@pytest.mark.parametrize("command", TYPED, ids=lambda command: f"{command.place} {command.text}")
def test_a_command_names_what_there_is(command: Command) -> None:
    text = command.text
    assert set(TARGET.findall(text)) <= targets()
    assert all(is_program(name) or name in OTHERS for name in MODULE.findall(text))
    if started := re.search(r"honcho start((?: \w+)*)$", text):
        assert set(started[1].split()) <= PROCESSES
    if module := program(command):
        own = re.split(r"ARGS=|python -m ", text)[-1]
        options = set(re.findall(r"(?<![\w-])--[a-z-]+", own)) - {"--help"}
        code = "".join(path.read_text() for path in sources(module))
        assert {option for option in options if f'"{option}"' not in code} == set()
    files = re.findall(r"(?:tests|docs|requirements)/[\w./-]+\.\w+", text)
    assert all((PROJECT / file).exists() for file in files)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_what_fails_in_a_copy_is_told_and_a_copy_has_nothing_but_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "a project"
    subprocess.run(["git", "init", "--quiet", project], check=True)  # noqa: S607
    for name, text in {"there": "", ".gitignore": ".venv\n", ".venv": ""}.items():
        (project / name).write_text(text)
    monkeypatch.setenv("DATABASE_URL", "postgresql://mine")
    copy = Copy(project, tmp_path / "a copy")
    run = {
        "ls -A .; ls -A ~; echo $DATABASE_URL": "",
        "exit 3": "status 3",
        "echo 'Traceback (most recent call last):'": "a traceback",
    }
    came = [copy.run(Command(text, "page", 1)) for text in run]
    assert [outcome.reason for outcome in came] == list(run.values())
    assert came[0].output == ".gitignore\nthere\n\n"
