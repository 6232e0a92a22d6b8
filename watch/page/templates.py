"""The page's templates, style and script, and the policy that lets a browser use these alone."""

import hashlib
from base64 import b64encode
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from watch import words
from watch.naming import called

HERE = Path(__file__).parent
STYLE = (HERE / "page.css").read_text()
SCRIPT = (HERE / "page.js").read_text()

_environment = Environment(
    loader=FileSystemLoader(HERE),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.filters.update(
    metres=words.metres,
    signed=words.signed,
    number=words.number,
    upto_most=words.upto_most,
    count=words.count,
    rate=words.rate,
    age=words.age,
    size=words.size,
    clock=words.clock,
    moment=words.moment,
    iso=words.iso,
    printable=words.printable,
    sentence=words.sentence,
    called=called,
    capital=lambda text: text[:1].upper() + text[1:],
)


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
