"""The contracts in contracts/: made from the code, and only ever growing."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, ClassVar

import msgspec
import pytest

from lab import contracts
from lab.contracts import FOLDER
from lab.contracts.growth import compared
from lab.contracts.payloads import Schema, of_struct, payloads
from lab.contracts.stream import STREAM
from rocket_rides.settings import PROJECT
from tests.support import tips
from unified_log.log import Data
from unified_log.readers.handler import Handler

RELEASES = sorted((FOLDER / "released").iterdir())
STAR: Schema = {
    "description": "What a rider said.",
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "stars": {"type": "integer", "maximum": 5, "description": "The more the better."},
        "of": {"enum": ["ride", "pilot"]},
        "at": {"type": "string", "format": "date-time"},
        "where": {"properties": {"x": {"type": "number"}, "y": {"type": "number"}}},
        "words": {"type": "array", "items": {"type": "string"}},
        "parts": {
            "items": {"properties": {"title": {"type": "string"}}, "required": ["title"]},
            "default": [],
        },
        "closed": {"properties": {}, "additionalProperties": False},
        "by": {"anyOf": [{"type": "null"}, {"properties": {"name": {"type": "string"}}}]},
    },
    "required": ["id", "stars"],
}

Change = Callable[[Schema], object]


class Place(msgspec.Struct):
    """Anywhere."""

    distance: Decimal | None = None


class Visit(Data, frozen=True):
    place: Annotated[Place, msgspec.Meta(description="Where it was.")]


def test_what_a_field_says_of_itself_precedes_what_its_struct_says() -> None:
    assert fields(of_struct("place.visit", Visit))["place"] == {
        "title": "Place",
        "description": "Where it was.",
        "type": "object",
        "properties": {
            "distance": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None}
        },
        "required": [],
    }


def test_they_say_what_the_code_says() -> None:
    there = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    assert there == contracts.documents(), "make docs writes them anew"


def test_this_version_has_copies_that_later_ones_must_fit() -> None:
    """A release begins with its number in pyproject.toml."""
    assert contracts.version() in [path.name for path in RELEASES], "make docs writes them"


def test_what_was_released_is_not_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contracts, "FOLDER", tmp_path)
    contracts.write()
    for folder in tmp_path, tmp_path / "released" / contracts.version():
        assert {path.name: path.read_text() for path in folder.glob("*.json")} == (
            contracts.documents()
        )
        (folder / STREAM).write_text("old")
        (folder / "gone.json").touch()
    contracts.write()
    assert (folder / "gone.json").exists()
    assert not (tmp_path / "gone.json").exists()
    assert (folder / STREAM).read_text() == "old"
    assert (tmp_path / STREAM).read_text() != "old"


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_they_fit_every_release(release: Path) -> None:
    assert compared(release, FOLDER) == []


def fields(schema: Schema) -> Schema:
    found: Schema = schema["properties"]
    return found


def comparison(folder: Path, name: str, was: Schema, change: Change) -> list[str]:
    """What is said of a contract that was released, and changed since."""
    now: Schema = json.loads(json.dumps(was))
    change(now)
    for place, schema in ("1.0.0", was), ("now", now):
        (folder / place).mkdir()
        (folder / place / name).write_text(json.dumps(schema))
    return compared(folder / "1.0.0", folder / "now")


@pytest.mark.proves("grows")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda it: fields(it).pop("of"), "of went"),
        (lambda it: fields(fields(it)["where"]).pop("x"), "where: x went"),
        (lambda it: it["required"].append("of"), "of is required, and older records lack it"),
        (lambda it: it["required"].pop(), "stars may be missing, and older readers need it"),
        (
            lambda it: fields(it)["stars"].update(type="string"),
            'stars: type was "integer", and is "string"',
        ),
        (lambda it: fields(it)["stars"].update(maximum=4), "stars: maximum was 5, and is 4"),
        (lambda it: fields(it)["stars"].update(maximum=9), "stars: maximum was 5, and is 9"),
        (lambda it: fields(it)["stars"].update(minimum=1), "stars: minimum was null, and is 1"),
        (
            lambda it: fields(it)["of"]["enum"].pop(),
            'of: enum was ["ride", "pilot"], and is ["ride"]',
        ),
        (
            lambda it: fields(it)["at"].update(format="date"),
            'at: format was "date-time", and is "date"',
        ),
        (
            lambda it: fields(it)["words"]["items"].update(maxLength=9),
            "words: items: maxLength was null, and is 9",
        ),
        (
            lambda it: fields(fields(it)["parts"]["items"])["title"].update(type="number"),
            'parts: items: title: type was "string", and is "number"',
        ),
        (
            lambda it: fields(it)["parts"]["items"]["required"].pop(),
            "parts: items: title may be missing, and older readers need it",
        ),
        (
            lambda it: fields(it)["parts"].update(default=[{"title": "all"}]),
            'parts: default was [], and is [{"title": "all"}]',
        ),
        (
            lambda it: fields(fields(it)["by"]["anyOf"][1]).pop("name"),
            "by: anyOf 1: name went",
        ),
        (
            lambda it: fields(it)["by"]["anyOf"].pop(0),
            'by: anyOf was [{"type": "null"}, {"properties": {"name": {"type": "string"}}}],'
            ' and is [{"properties": {"name": {"type": "string"}}}]',
        ),
        (
            lambda it: fields(fields(it)["closed"]).update(x={"type": "number"}),
            "closed: x is new, and older readers refuse fields that they do not know",
        ),
        (
            lambda it: it.update(additionalProperties=False),
            "additionalProperties was null, and is false",
        ),
    ],
)
def test_a_change_that_is_no_growth_is_refused_with_the_type_to_add(
    tmp_path: Path, change: Change, why: str
) -> None:
    assert comparison(tmp_path, "star.give.json", STAR, change) == [
        f"star.give.json no longer fits release 1.0.0: {why}. Leave star.give as it is, and add the"
        " type star.give.2 (docs/add-a-kind.md)"
    ]


@pytest.mark.parametrize(
    "growth",
    [
        lambda it: fields(it).update(tip={"type": "integer"}),
        lambda it: fields(fields(it)["where"]).update(z={"type": "number"}),
        lambda it: fields(it)["stars"].update(description="From 1 to 5.", examples=[5]),
        lambda it: fields(it)["words"]["items"].update(description="Any."),
        lambda it: fields(fields(it)["parts"]["items"]).update(x={"type": "integer"}),
        lambda it: fields(fields(it)["by"]["anyOf"][1]).update(x={"type": "integer"}),
    ],
)
def test_a_field_that_need_not_be_there_and_other_words_are_growth(
    tmp_path: Path, growth: Change
) -> None:
    assert comparison(tmp_path, "star.give.json", STAR, growth) == []


def test_a_type_that_is_gone_is_refused(tmp_path: Path) -> None:
    (tmp_path / "star.give.2.json").write_text("{}")
    [said] = compared(tmp_path, tmp_path / "now")
    assert "star.give.2.json no longer fits" in said
    assert "it is gone. Leave star.give.2 as it is, and add the type star.give.3" in said


def test_so_is_a_field_of_the_log_that_went(tmp_path: Path) -> None:
    def change(document: Schema) -> None:
        entry = document["components"]["messageTraits"]["entry"]
        fields(entry["headers"]).pop("prev")
        entry["x-payload-field"] = "payload"

    was = json.loads((FOLDER / STREAM).read_text())
    [said] = comparison(tmp_path, STREAM, was, change)
    why = 'headers: prev went; x-payload-field was "data", and is "payload"'
    assert said.startswith(f"log.asyncapi.json no longer fits release 1.0.0: {why}. ")


def test_a_kind_that_is_added_has_a_contract() -> None:
    assert payloads(tips) == {
        "tip.create": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "tip.create",
            "description": "What a rider gave for a ride.",
            "type": "object",
            "properties": {
                "id": fields(payloads()["ride.create"])["id"],
                "ride_id": {"type": "integer", "examples": [519]},
                "cents": {
                    "type": "integer",
                    "exclusiveMinimum": 0,
                    "description": "Euro cents.",
                    "examples": [100],
                },
            },
            "required": ["id", "ride_id", "cents"],
            "examples": [{"id": 521, "ride_id": 519, "cents": 100}],
        }
    }


def test_a_type_that_is_attached_and_that_no_handler_handles_is_named(tmp_path: Path) -> None:
    assert contracts.without_contract() == []
    page = (PROJECT / "docs/add-a-kind.md").read_text()
    (tmp_path / "0012_tips.sql").write_text(page)
    (tmp_path / "0013_orders.py").write_text("SELECT attach('orders', 'position', 'order.create',")
    assert contracts.without_contract(tmp_path) == ["order.create", "tip.create"]


class Other(Data, frozen=True):
    """Of the same type as a tip."""


def other(record: object) -> Other:
    raise NotImplementedError


@pytest.mark.parametrize(
    ("parse", "why"),
    [
        (lambda record: record, "tip.create has no contract: let the function that parses it, in"),
        (other, "tip.create has two contracts, Tip and Other: "),
    ],
)
def test_a_kind_whose_struct_is_not_clear_is_named(parse: Any, why: str) -> None:
    class Mistaken(tips.Tips):
        TYPES: ClassVar = {"tip.create": parse}

    package = ModuleType("kinds")
    package.__path__ = []
    package.Tips, package.Mistaken, package.Handler = tips.Tips, Mistaken, Handler  # type: ignore[attr-defined]
    with pytest.raises(SystemExit, match=why):
        payloads(package)
