"""The contract of each type of record: a JSON Schema, made from the struct that is parsed.

So a kind that somebody adds has a contract as soon as a handler in `consumers/` handles it.
"""

import importlib
import inspect
import json
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any, TypeAlias

import msgspec

import consumers
from rocket_rides.settings import PROJECT
from unified_log.readers.handler import Handler

Schema: TypeAlias = dict[str, Any]

RECEIPT = "ride.receipt"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
# Postgres writes a numeric into jsonb as a number; msgspec would take a string, too.
DECIMAL, NUMBER = {"type": "string", "format": "decimal"}, {"type": "number"}


def payloads(package: ModuleType = consumers) -> dict[str, Schema]:
    """By type, the contract of what a package's handlers handle; exits where it is not clear."""
    structs: dict[str, Any] = {}
    for handler in handlers(package):
        for type_, parse in handler.TYPES.items():
            struct = inspect.signature(parse, eval_str=True).return_annotation
            if not (inspect.isclass(struct) and issubclass(struct, msgspec.Struct)):
                raise SystemExit(
                    f"{type_} has no contract: let the function that parses it, in the TYPES of"
                    f" {handler.__name__}, say which msgspec.Struct it returns"
                )
            if structs.setdefault(type_, struct) is not struct:
                raise SystemExit(
                    f"{type_} has two contracts, {structs[type_].__name__} and {struct.__name__}:"
                    " let its handlers share one function that parses it"
                )
    return {type_: of_struct(type_, structs[type_]) for type_ in sorted(structs)}


def handlers(package: ModuleType) -> Iterator[type[Handler]]:
    """Those in a package, but for its programs."""
    within = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    modules = [importlib.import_module(at.name) for at in within if "__main__" not in at.name]
    for each in (each for module in (package, *modules) for each in vars(module).values()):
        if inspect.isclass(each) and issubclass(each, Handler) and not inspect.isabstract(each):
            yield each


def of_struct(type_: str, struct: type[msgspec.Struct]) -> Schema:
    found = msgspec.json.schema(struct)
    return contract(type_, inlined(found, found["$defs"]))


def receipt() -> Schema:
    """The contract of a receipt, which `api/openapi.json` describes as a webhook."""
    defined = json.loads((PROJECT / "api/openapi.json").read_text())["components"]["schemas"]
    return contract(RECEIPT, inlined(defined["ReceiptMessage"], defined))


def contract(type_: str, schema: Schema) -> Schema:
    """A schema with its dialect and title, and with an example, if each field has one."""
    fields = schema["properties"]
    example = {name: field["examples"][0] for name, field in fields.items() if "examples" in field}
    whole = {"examples": [example]} if example.keys() == fields.keys() else {}
    return {"$schema": DIALECT, "title": type_} | schema | {"title": type_} | whole


def inlined(schema: Any, definitions: Schema) -> Any:
    """The schema with each `$ref` replaced by what it refers to, and decimals as numbers."""
    if isinstance(schema, list):
        return [inlined(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:  # what stands beside it is said of this place
        beside = {name: each for name, each in schema.items() if name != "$ref"}
        schema = definitions[schema["$ref"].rpartition("/")[2]] | beside
    kept = {name: inlined(each, definitions) for name, each in schema.items() if name != "$defs"}
    if kept.items() >= DECIMAL.items():
        del kept["format"]
        kept |= NUMBER
    return kept
