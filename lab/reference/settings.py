"""The settings: each with its default and the docstring below it in `rocket_rides/settings.py`."""

import ast
import inspect

from lab.reference.blocks import table
from rocket_rides.settings import PROJECT, Settings


def settings() -> str:
    meanings = docstrings(Settings)
    return table(
        ["variable", "default", "meaning"],
        (
            [f"`{name.upper()}`", default(field.default), meanings[name]]
            for name, field in Settings.model_fields.items()
        ),
    )


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
