"""A payload only grows: each contract is compared with those of every release.

Readers of an older release meet new records, and new readers heal from old rows. So a field may be
added, if it need not be there; all else is a new type.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab.contracts.payloads import Schema
from lab.contracts.stream import STREAM

# They say nothing of which values there may be. (A default does: it is what older records mean.)
ANNOTATIONS = {"$schema", "$comment", "title", "description", "examples", "deprecated"}


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
    """The schema of a payload; of the stream's document, what it says of an entry's fields."""
    document: Schema = json.loads(path.read_text())
    return document["components"]["messageTraits"]["entry"] if path.name == STREAM else document


def changes(was: Schema, now: Schema, of: str = "") -> Iterator[str]:
    """What is not as it was, but for new fields that need not be there."""
    fields, fields_now = was.get("properties", {}), now.get("properties", {})
    needed, needed_now = set(was.get("required", ())), set(now.get("required", ()))
    for field in fields:
        if field in fields_now:
            yield from changes(fields[field], fields_now[field], f"{of}{field}: ")
        else:
            yield f"{of}{field} went"
    if "additionalProperties" in was:
        for field in sorted(fields_now.keys() - fields):
            yield f"{of}{field} is new, and older readers refuse fields that they do not know"
    for field in sorted(needed_now - needed):
        yield f"{of}{field} is required, and older records lack it"
    for field in sorted((needed - needed_now) & fields_now.keys()):
        yield f"{of}{field} may be missing, and older readers need it"
    keywords = (was.keys() | now.keys()) - ANNOTATIONS - {"properties", "required"}
    for keyword in sorted(keywords):
        before, after = was.get(keyword), now.get(keyword)
        within = pairs(keyword, before, after)
        for name, pair in within.items():
            yield from changes(*pair, f"{of}{name}: ")
        if not within and before != after:
            yield f"{of}{keyword} was {json.dumps(before)}, and is {json.dumps(after)}"


def pairs(keyword: str, before: Any, after: Any) -> dict[str, tuple[Schema, Schema]]:
    """The schemas below a keyword, by where they are; nothing where they are not alike."""
    if keyword in {"items", "additionalProperties", "headers"}:
        if isinstance(before, dict) and isinstance(after, dict):
            return {keyword: (before, after)}
    elif keyword == "anyOf" and before and after and len(before) == len(after):
        both = zip(before, after, strict=True)
        return {f"{keyword} {place}": pair for place, pair in enumerate(both)}
    return {}


def advice(name: str) -> str:
    if name == STREAM:
        return "Readers of every release need these fields: leave them, and add others"
    type_ = name.removesuffix(".json")
    return f"Leave {type_} as it is, and add the type {following(type_)} (docs/add-a-kind.md)"


def following(type_: str) -> str:
    """The type after this one: `ride.create.2` after `ride.create`."""
    [(kind, number)] = re.findall(r"^(.*?)(?:\.(\d+))?$", type_)
    return f"{kind}.{int(number or 1) + 1}"
