"""A payload only grows: each contract is compared with those of every release.

Readers of an older release meet new records, and new readers heal from old rows. So a field may be
added, if it need not be there; what else says which values there may be stays as it is. All else is
a new type.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab.contracts.payloads import Schema
from lab.contracts.stream import STREAM

# They say nothing of which values there may be.
ANNOTATIONS = {"$schema", "$comment", "title", "description", "examples", "default", "deprecated"}


def compared(release: Path, folder: Path) -> list[str]:
    """What in a folder of contracts no longer fits those of a release: a sentence for each."""
    found = {
        path.name: [*changes(schema(path), schema(folder / path.name))]
        if (folder / path.name).exists()
        else ["it is gone"]
        for path in sorted(release.glob("*.json"))
    }
    return [
        f"{name} no longer fits release {release.name}: {'; '.join(changed)}. {advice(name)}"
        for name, changed in found.items()
        if changed
    ]


def schema(path: Path) -> Schema:
    """The schema of a payload; of the stream's document, that of an entry's fields."""
    document: Schema = json.loads(path.read_text())
    if path.name == STREAM:
        document = document["components"]["messageTraits"]["entry"]["headers"]
    return document


def changes(was: Schema, now: Schema, of: str = "") -> Iterator[str]:
    """What is not as it was, but for new fields that need not be there."""
    fields, fields_now = was.get("properties", {}), now.get("properties", {})
    needed, needed_now = set(was.get("required", ())), set(now.get("required", ()))
    for field in fields:
        if field in fields_now:
            yield from changes(fields[field], fields_now[field], f"{of}{field}: ")
        else:
            yield f"{of}{field} went"
    for field in sorted(needed_now - needed):
        yield f"{of}{field} is required, and older records lack it"
    for field in sorted((needed - needed_now) & fields_now.keys()):
        yield f"{of}{field} may be missing, and older readers need it"
    keywords = (was.keys() | now.keys()) - ANNOTATIONS - {"properties", "required"}
    for keyword in sorted(keywords):
        before, after = bare(was.get(keyword)), bare(now.get(keyword))
        if before != after:
            yield f"{of}{keyword} was {json.dumps(before)}, and is {json.dumps(after)}"


def bare(value: Any) -> Any:
    """Without annotations, at whatever depth."""
    if isinstance(value, dict):
        return {name: bare(each) for name, each in value.items() if name not in ANNOTATIONS}
    return [bare(each) for each in value] if isinstance(value, list) else value


def advice(name: str) -> str:
    if name == STREAM:
        return "Readers of every release need these fields: leave them, and add others"
    type_ = name.removesuffix(".json")
    return f"Leave {type_} as it is, and add the type {following(type_)} (docs/add-a-kind.md)"


def following(type_: str) -> str:
    """The type after this one: `ride.create.2` after `ride.create`."""
    [(kind, number)] = re.findall(r"^(.*?)(?:\.(\d+))?$", type_)
    return f"{kind}.{int(number or 1) + 1}"
