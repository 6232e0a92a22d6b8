"""What readers outside may rely on: the documents in `contracts/`, which `make docs` writes.

A JSON Schema for each type of record and for the receipts (`payloads`), and an AsyncAPI document of
the stream that the records come in (`stream`). `contracts/released/` keeps those of each release;
they are compared with what is made later (`growth`).
"""

import json
import re
import tomllib
from pathlib import Path

from lab.contracts.payloads import RECEIPT, Schema, payloads, receipt
from lab.contracts.stream import STREAM, stream
from rocket_rides.settings import PROJECT

FOLDER = PROJECT / "contracts"
REVISIONS = PROJECT / "migrations/versions"
ATTACHED = re.compile(r"\battach\(\s*'[^']+',\s*'[^']+',\s*'([^']+)'")


def documents() -> dict[str, str]:
    types = payloads()
    contracts: dict[str, Schema] = types | {RECEIPT: receipt()}
    made = {f"{type_}.json": contract for type_, contract in contracts.items()}
    made[STREAM] = stream(types, version())
    written = {name: json.dumps(each, indent=2, ensure_ascii=False) for name, each in made.items()}
    return {name: f"{text}\n" for name, text in written.items()}


def without_contract(revisions: Path = REVISIONS) -> list[str]:
    """The types that a revision attaches, and that no handler in `consumers/` handles."""
    files = [file.read_text() for file in revisions.glob("[0-9]*") if file.is_file()]
    return sorted({type_ for text in files for type_ in ATTACHED.findall(text)} - payloads().keys())


def version() -> str:
    """The project's: of the last release, or of the one that is about to be made."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    return str(project["version"])


def write() -> None:
    """Write all, and no other; and, for a version that has none yet, copies that later ones fit."""
    release = FOLDER / "released" / version()
    folders = [FOLDER] if release.exists() else [FOLDER, release]
    made = documents()
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob("*.json"):
            if path.name not in made:
                path.unlink()
        for name, text in made.items():
            (folder / name).write_text(text)
