"""The page's templates, style and script, and the policy that lets a browser use only these."""

import hashlib
from base64 import b64encode
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rocket_rides.words import metres, rate, signed, size
from unified_log.words import DASH, age, count, number, printable
from watch.facts import MOST
from watch.findings import since
from watch.naming import called, decided, lacking, undecided
from watch.problems import LATE, RECEIPTS_LATE
from watch.runs import AGREED, HELD, WRONG

HERE = Path(__file__).parent
STYLE = (HERE / "page.css").read_text()
SCRIPT = (HERE / "page.js").read_text()
# Changes with the frame, the style and the script: an old page has to load itself anew.
_frame = (HERE / "page.html").read_text() + STYLE + SCRIPT
VERSION = hashlib.sha256(_frame.encode()).hexdigest()[:12]

# Seconds. A reader that is further behind is pointed out, though that is no problem yet. A receipt
# that its receiver puts off is sent again after one second, and then after three more.
NOTED = 1.5
RECEIPTS_NOTED = 3.0


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


# Only these get a capital: other first words are names of consumers, programs or servers.
BEGIN_SENTENCES = {"a", "all", "it", "its", "more", "nobody", "no", "readers", "reconciliation",
                   "run", "start", "the"}  # fmt: skip


def capital(text: str) -> str:
    """The same with a capital."""
    return text[:1].upper() + text[1:]


def sentence(text: str) -> str:
    """The same with a capital, unless it begins with a name."""
    return capital(text) if text.partition(" ")[0] in BEGIN_SENTENCES else text


_environment = Environment(
    loader=FileSystemLoader(HERE),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_words = (metres, signed, number, count, rate, age, size)
_names = (printable, called, decided, lacking, undecided)
for each in (*_words, *_names, since, clock, moment, iso, capital, sentence):
    _environment.filters[each.__name__] = each
_environment.filters["upto_most"] = partial(number, most=MOST)
_environment.globals.update(
    style=Markup(STYLE),  # noqa: S704  # our own file
    script=Markup(SCRIPT),  # noqa: S704  # our own file
    version=VERSION,
    dash=DASH,
    most=MOST,
    moods={AGREED: "good", WRONG: "noted", HELD: "bad"},  # of a run, and of its parts
    noted=NOTED,
    receipts_noted=RECEIPTS_NOTED,
    late=LATE,
    receipts_late=RECEIPTS_LATE,
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
_fragments = [
    _environment.get_template(f"fragments/{path.name}")
    for path in sorted((HERE / "fragments").glob("*.html"))
]
_BLOCKS = {name: template for template in _fragments for name in template.blocks}
# The parts of the page; an event is rendered for each.
PARTS = [name for name in _BLOCKS if name != "event"]


def block(name: str, values: dict[str, Any]) -> Markup:
    """A part of the page, whose values are escaped: one block of a template."""
    template = _BLOCKS[name]
    html = "".join(template.blocks[name](template.new_context(values))).strip()
    return Markup(html)  # noqa: S704
