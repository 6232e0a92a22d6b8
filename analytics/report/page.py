"""The report as a page: one self-contained file, without scripts, that needs no network.

A consumer's name is an arbitrary string. It gets into the page only through the template, which
escapes it; and the page's own policy allows no scripts.
"""

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from analytics.report import proofs
from analytics.report.sentences import closed, outcome, rides_of, verdict, ways_out
from analytics.result import PastRun, Result
from rocket_rides.words import metres, signed
from unified_log.words import count, printable

_pages = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_pages.filters.update(
    metres=metres,
    signed=signed,
    printable=printable,
    count=count,
    utc=proofs.moment,
)


def as_html(result: Result, past: Sequence[PastRun]) -> str:
    """The page, with the runs in `past`, which may include this one."""
    return _pages.get_template("page.html").render(
        result=result,
        mood="wrong" if not result.agrees else "right" if result.consumers else "none",
        verdict=verdict(result, *proofs.clauses(result)),
        proofs=list(proofs.proofs(result)),
        rides_of=rides_of,
        ways_out=list(ways_out(result)),
        outcome=lambda consumer: outcome(result, consumer),
        closed=closed(result),
        past=past,
        whose=proofs.whose,
    )
