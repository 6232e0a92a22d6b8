"""The tables: what the comment above each says in the schema, and whose code writes to it."""

import re
from collections.abc import Iterator
from pathlib import Path

from lab.reference.blocks import table
from rocket_rides.settings import PROJECT

SCHEMA = [PROJECT / "migrations/versions" / name for name in ("rides.sql", "0010_schema.sql")]
TABLE = re.compile(r"((?:^--.*\n)+)CREATE TABLE (\w+)", re.MULTILINE)
WRITTEN = re.compile(r"\b(?:INSERT INTO|UPDATE|DELETE FROM) ([a-z_]+)")
SERVICES = ("api", "streamer", "consumers", "analytics", "rocket_rides")


def tables() -> str:
    writers = {name: sorted(set(found)) for name, found in written().items()}
    rows = (
        [f"`{name}`", first_paragraph(comment), ", ".join(f"`{file}`" for file in writers[name])]
        for file in SCHEMA
        for comment, name in TABLE.findall(file.read_text())
    )
    return table(["table", "what it holds", "who writes to it"], rows)


def first_paragraph(comment: str) -> str:
    lines = [line.removeprefix("--").strip() for line in comment.splitlines()]
    return " ".join(lines[: lines.index("")] if "" in lines else lines)


def written() -> dict[str, list[str]]:
    """By the table, the packages whose statements write to it."""
    found: dict[str, list[str]] = {}
    for file, statement in statements():
        found.setdefault(statement, []).append(f"{file.parent.relative_to(PROJECT)}/")
    return found


def statements() -> Iterator[tuple[Path, str]]:
    """The files of the services, with each table that they write to."""
    for service in SERVICES:
        for file in sorted((PROJECT / service).rglob("*.py")):
            for name in WRITTEN.findall(file.read_text()):
                yield file, name
