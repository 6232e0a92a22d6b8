"""`python -m lab.reference`: writes what the code says into the pages of reference, and contracts.

What a page says of a setting, a metric, a route or a table stands once, beside it in the code. The
page holds it in a block (`lab/blocks.py`); what is outside of the blocks is written by
people. The contracts of the log are files of their own (`lab/contracts/`).
"""

import ast
import inspect
import json
import re
from collections import defaultdict
from typing import Any

from lab import contracts
from lab.blocks import Blocks, table, write
from rocket_rides.settings import PROJECT, Settings
from unified_log.process import show, take_no_arguments
from watch.metrics import HELP, LABELS

DESCRIBED: dict[str, Any] = json.loads((PROJECT / "api/openapi.json").read_text())
SCHEMA = [
    *sorted((PROJECT / "unified_log/schema").glob("*.sql")),
    *sorted((PROJECT / "migrations/versions").glob("*.sql")),
]
TABLE = re.compile(r"((?:^--.*\n)+)CREATE TABLE (\w+)", re.MULTILINE)
WRITTEN = re.compile(r"\b(?:INSERT INTO|UPDATE|DELETE FROM) ([a-z_]+)")
WRITERS = ("unified_log", "api", "cells", "consumers", "analytics", "rocket_rides")


def settings() -> str:
    """Each with its default and the docstring below it in `rocket_rides/settings.py`."""
    meanings = docstrings(Settings)
    rows = (
        [f"`{name.upper()}`", default(field.default), meanings[name]]
        for name, field in Settings.model_fields.items()
    )
    return table(["variable", "default", "meaning"], rows)


def default(value: object) -> str:
    """As one would write it; nothing where it follows from other settings."""
    return "" if value in ("", None) else f"`{str(value).removeprefix(f'{PROJECT}/')}`"


def docstrings(of: type) -> dict[str, str]:
    """The string below each field of a class, on one line."""
    [described] = ast.parse(inspect.getsource(of)).body
    assert isinstance(described, ast.ClassDef)  # noqa: S101 (for the type checker)
    found = {}
    for field, below in zip(described.body, described.body[1:], strict=False):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = " ".join(text.split())
    return found


def metrics() -> str:
    """Each with its labels and its HELP line, as `watch/metrics.py` tells Prometheus."""
    labels = {name: f"{{{','.join(each)}}}" for name, each in LABELS.items() if each}
    shown = {name: name + labels.get(name, "") for name in HELP}
    width = max(map(len, shown.values()))
    lines = [f"{shown[name]:{width}}  {meaning}" for name, meaning in HELP.items()]
    return "\n".join(["```", *lines, "```"])


def tables() -> str:
    """What the comment above each says in the schema, and whose code writes to it."""
    by = writers()
    rows = (
        [f"`{name}`", first_paragraph(comment), ", ".join(sorted(by[name]))]
        for file in SCHEMA
        for comment, name in TABLE.findall(file.read_text())
    )
    return table(["table", "what it holds", "who writes to it"], rows)


def first_paragraph(comment: str) -> str:
    lines = [line.removeprefix("--").strip() for line in comment.splitlines()]
    return " ".join(lines[: lines.index("")] if "" in lines else lines)


def writers() -> dict[str, set[str]]:
    """By the table, the packages whose statements write to it."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for writer in WRITERS:
        for file in (PROJECT / writer).rglob("*.py"):
            for name in WRITTEN.findall(file.read_text()):
                found[name].add(f"`{file.parent.relative_to(PROJECT)}/`")
    return found


def routes() -> str:
    rows = (
        [f"`{method.upper()} {path}`", it["summary"]]
        for path, methods in DESCRIBED["paths"].items()
        for method, it in methods.items()
    )
    return table(["route", "what it does"], rows)


def problems() -> str:
    kinds = DESCRIBED["components"]["schemas"]["ProblemType"]["oneOf"]
    return table(["`type`", "meaning"], ([f"`{it['const']}`", it["description"]] for it in kinds))


PAGES: dict[str, Blocks] = {
    "docs/settings.md": {"settings": settings},
    "docs/metrics.md": {"metrics": metrics},
    "docs/schema.md": {"tables": tables},
    "docs/api.md": {"routes": routes, "problems": problems},
}


def main() -> None:
    take_no_arguments("lab.reference", __doc__)
    for page, blocks in PAGES.items():
        write(PROJECT / page, blocks)
    contracts.write()
    for type_ in contracts.without_contract():
        show([f"{type_} has no contract: write its handler in consumers/, not in a __main__.py"])


if __name__ == "__main__":
    main()
