"""Parses the pages of documentation: what they name, and their headings."""

import re
from collections.abc import Iterator
from pathlib import Path

from rocket_rides.settings import PROJECT

FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*)$", re.M)
TARGET = re.compile(r"\bmake ([a-z][a-z-]*)")
MODULE = re.compile(r"\bpython -m ([a-z_.]+)")


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text())


def code(page: Path) -> Iterator[str]:
    yield from CODE.findall(prose(page))
    yield from FENCE.findall(page.read_text())


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = (LINK.sub("", heading).lower() for heading in HEADING.findall(prose(page)))
    return {re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading in headings}


def targets() -> set[str]:
    """The targets of the Makefile."""
    rules = re.findall(r"^([a-z -]+):", (PROJECT / "Makefile").read_text(), re.M)
    return {target for rule in rules for target in rule.split()}


def is_program(module: str) -> bool:
    path = Path(PROJECT, *module.split("."))
    return path.with_suffix(".py").exists() or (path / "__main__.py").exists()
