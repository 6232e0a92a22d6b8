"""The page's templates, style and script, and the policy that lets a browser use these alone."""

import hashlib
from base64 import b64encode
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from rocket_rides import words
from watch.facts import MOST
from watch.naming import called

HERE = Path(__file__).parent
STYLE = (HERE / "page.css").read_text()
SCRIPT = (HERE / "page.js").read_text()


def clock(value: datetime) -> str:
    """The time of day: 14:03:22, in UTC."""
    return f"{value.astimezone(UTC):%H:%M:%S}"


def moment(value: datetime) -> str:
    """A time with its date: 22 Nov 14:03, in UTC."""
    utc = value.astimezone(UTC)
    return f"{utc.day} {utc:%b %H:%M}"


def iso(value: datetime) -> str:
    """A time for programs."""
    return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def capital(text: str) -> str:
    """The same with a capital."""
    return text[:1].upper() + text[1:]


def sentence(text: str) -> str:
    """The same with a capital, unless it begins with a name."""
    begins = text.partition(" ")[0] in ("a", "all", "reconciliation", "the")
    return capital(text) if begins else text


_environment = Environment(
    loader=FileSystemLoader(HERE),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_words = (words.metres, words.signed, words.number, words.count, words.rate, words.age, words.size)
for each in (*_words, words.printable, called, clock, moment, iso, capital, sentence):
    _environment.filters[each.__name__] = each
_environment.filters["upto_most"] = partial(words.number, most=MOST)


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


POLICY = "; ".join(
    (
        "default-src 'none'",
        f"style-src {_hash(STYLE)}",
        f"script-src {_hash(SCRIPT)}",
        "connect-src 'self'",
        "img-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)


FRAME = _environment.get_template("page.html")
FRAGMENTS = [
    _environment.get_template(f"fragments/{path.name}")
    for path in sorted((HERE / "fragments").glob("*.html"))
]
# Changes with the frame, the style and the script: an old page has to load itself anew.
VERSION = hashlib.sha256(((HERE / "page.html").read_text() + STYLE + SCRIPT).encode()).hexdigest()[
    :12
]


def block(template: Template, name: str, values: dict[str, Any]) -> str:
    """A part of the page: one block of a template."""
    return "".join(template.blocks[name](template.new_context(values))).strip()


def with_block(name: str) -> Template:
    """The template that has the block of that name."""
    [found] = [template for template in FRAGMENTS if name in template.blocks]
    return found
