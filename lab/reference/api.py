"""The API's routes, refusals and types of problems, as `api/openapi.json` describes them."""

import json
from collections.abc import Iterator
from typing import Any

from lab.reference.blocks import table
from rocket_rides.settings import PROJECT

DESCRIBED: dict[str, Any] = json.loads((PROJECT / "api/openapi.json").read_text())


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each with its method and its path."""
    for path, methods in DESCRIBED["paths"].items():
        for method, operation in methods.items():
            yield f"`{method.upper()} {path}`", operation


def routes() -> str:
    return table(
        ["route", "what it does", "statuses"],
        ([route, it["summary"], ", ".join(it["responses"])] for route, it in operations()),
    )


def refusals() -> str:
    """Each status with what it means, where that is said of one route alone."""
    taken = DESCRIBED["paths"]["/rides"]["post"]["responses"]
    return table(
        ["status", "when"],
        (
            [status, response["description"]]
            for status, response in taken.items()
            if "description" in response and int(status) >= 400
        ),
    )


def problems() -> str:
    kinds = DESCRIBED["components"]["schemas"]["ProblemType"]["oneOf"]
    return table(["`type`", "meaning"], ([f"`{it['const']}`", it["description"]] for it in kinds))
