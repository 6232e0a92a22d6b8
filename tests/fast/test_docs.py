"""The pages name only what there is: files, links, headings, commands, folders, versions."""

import json
import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rocket_rides.settings import PROJECT
from tests.support.pages import (
    CODE,
    LINK,
    MODULE,
    TARGET,
    anchors,
    code,
    is_program,
    prose,
    targets,
)

README = PROJECT / "README.md"
INDEX = PROJECT / "docs/README.md"
PAGES = {page.relative_to(PROJECT).as_posix(): page for page in PROJECT.glob("docs/*.md")}
PAGES["README.md"] = README
BESIDE = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "cells/README.md", "deploy/README.md")
OUTSIDE = {name: PROJECT / name for name in BESIDE}  # of docs/
MOST_WORDS = {"README.md": 900, "docs/compared.md": 600, "CONTRIBUTING.md": 600, "SECURITY.md": 600}
MOST_WORDS_IN_ALL = 17_000  # of README.md and docs/
PICTURES = {".png", ".svg"}
LARGEST_PICTURE = 250_000  # bytes

SVG = "{http://www.w3.org/2000/svg}"
DRAWN = re.compile(r"\w+/[\w/]*(\.\w+)?")  # a file that a picture names, or a folder
FILE = re.compile(r"(?!\.)[\w.-]+(/[\w.-]+)+/?|[\w-]+/|[\w.-]+\.(py|md|yml|toml|txt|json|html)")

# Look like files of the project, and are not.
OTHERS = {
    "DATA_DIR/warehouse",
    "WAREHOUSE_DIR/rides",
    "report.html",
    "result.json",
    "long_rides.py",
    "ride_total.py",
    "migrations/versions/0012_tips.sql",
    "0012_tips.py",
    "consumers/tips.py",
    "__main__.py",
}
# Programs that come with Python, or that the reader of a page writes.
OTHER_PROGRAMS = {"venv", "long_rides", "orders.takings"}

a_page = pytest.mark.parametrize("name", sorted(PAGES | OUTSIDE))


def folders() -> set[str]:
    """The top-level folders in which there is something, but for hidden ones and what is built."""
    return {
        path.parts[0]
        for path in (file.relative_to(PROJECT) for file in PROJECT.glob("[!.]*/**/*"))
        if not {"__pycache__", "dist"} & {*path.parts} and (PROJECT / path).is_file()
    }


def named(page: Path) -> set[str]:
    """The files and folders in the first column of a page's tables."""
    rows = (line for line in prose(page).splitlines() if line.startswith("| `"))
    return {path for row in rows for path in CODE.findall(row.split("|")[1])}


def words(page: Path) -> int:
    """Of its text, tables and commands; what has no letter and no digit is none."""
    return sum(bool(re.search(r"\w", word)) for word in page.read_text().split())


def linked(page: Path) -> set[Path]:
    """The files that it links to."""
    targets = (target.partition("#")[0] for target in LINK.findall(prose(page)))
    return {(page.parent / target).resolve() for target in targets if "://" not in target}


@pytest.mark.parametrize(("name", "most"), MOST_WORDS.items())
def test_what_is_meant_to_be_one_page_is_one(name: str, most: int) -> None:
    assert words(PROJECT / name) <= most


def test_the_readme_begins_with_for_whom_it_is_and_for_whom_it_is_not() -> None:
    beginning = README.read_text().partition("\n## ")[0]
    assert "for engineers who" in beginning
    assert "Not for you?" in beginning
    assert PROJECT / "docs/compared.md" in linked(README)


def test_every_comparison_has_a_source() -> None:
    _, *others = (PROJECT / "docs/compared.md").read_text().split("\n## ")
    assert len(others) == 5
    assert all("](https://" in other for other in others)


def test_the_changelog_knows_this_version_and_keeps_its_form() -> None:
    changes = (PROJECT / "CHANGELOG.md").read_text()
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    versions = re.findall(r"^## \[([^]]+)\](?: - \d{4}-\d\d-\d\d)?$", changes, re.M)
    assert versions[:2] == ["Unreleased", project["version"]]
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.*)$", changes, re.M)) <= kinds


def test_the_version_is_the_same_wherever_it_stands() -> None:
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    described = json.loads((PROJECT / "api/openapi.json").read_text())
    assert described["info"]["version"] == version
    kustomization = (PROJECT / "deploy/kubernetes/kustomization.yaml").read_text()
    assert set(re.findall(r"newTag: ([\w.]+)", kustomization)) == {version}


def test_the_licence_that_is_declared_is_the_one_that_is_there() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    [file] = project["license-files"]
    assert (PROJECT / file).read_text().startswith(f"{project['license']} License\n")


def test_all_pages_can_be_read_in_an_afternoon() -> None:
    longest = {name: words(page) for name, page in PAGES.items()}
    assert sum(longest.values()) <= MOST_WORDS_IN_ALL, longest


def test_pictures_are_soon_loaded() -> None:
    pictures = [path for path in PROJECT.glob("docs/**/*") if path.suffix in PICTURES]
    sizes = {path.name: path.stat().st_size for path in pictures}
    assert sizes
    assert {name: size for name, size in sizes.items() if size > LARGEST_PICTURE} == {}


@pytest.mark.parametrize(
    "path", sorted(PROJECT.glob("docs/pictures/*")), ids=lambda path: path.name
)
def test_a_picture_names_only_files_that_are_there_and_is_in_a_page(path: Path) -> None:
    picture = ElementTree.parse(path)  # noqa: S314 (it is ours)
    texts = (text.text or "" for text in picture.iter(f"{SVG}text"))
    missing = [text for text in texts if DRAWN.fullmatch(text) and not (PROJECT / text).exists()]
    assert missing == []
    assert any(f"pictures/{path.name})" in page.read_text() for page in PAGES.values())


def test_every_page_can_be_found_from_the_readme_or_from_the_index() -> None:
    assert INDEX in linked(README)
    assert {*PAGES.values(), *OUTSIDE.values()} - linked(README) - linked(INDEX) == {README}


@a_page
def test_every_link_leads_somewhere(name: str) -> None:
    page, broken = (PAGES | OUTSIDE)[name], []
    for link in LINK.findall(prose(page)):
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(link)
    assert broken == [], f"{name} links to what is not there: {', '.join(broken)}"


@a_page
def test_every_file_named_is_there(name: str) -> None:
    found = (word.strip(",;:()") for part in code((PAGES | OUTSIDE)[name]) for word in part.split())
    files = {word for word in found if FILE.fullmatch(word)} - OTHERS
    broken = sorted(file for file in files if not (PROJECT / file).exists())
    assert broken == [], f"{name} names files that are not there: {', '.join(broken)}"


@a_page
def test_every_target_named_is_in_the_makefile(name: str) -> None:
    asked = {target for part in code((PAGES | OUTSIDE)[name]) for target in TARGET.findall(part)}
    broken = sorted(f"make {target}" for target in asked - targets())
    assert broken == [], f"{name} has commands that the Makefile has not: {', '.join(broken)}"


@a_page
def test_every_module_named_is_there(name: str) -> None:
    asked = {module for part in code((PAGES | OUTSIDE)[name]) for module in MODULE.findall(part)}
    broken = sorted(module for module in asked - OTHER_PROGRAMS if not is_program(module))
    assert broken == [], f"{name} has modules that are no programs: {', '.join(broken)}"


def test_the_readme_names_every_folder() -> None:
    named_folders = {path.partition("/")[0] for path in named(README) if path.endswith("/")}
    assert named_folders == folders()
