"""The report as a page: one self-contained file, without scripts, that needs no network.

A consumer's name is an arbitrary string. It gets into the page only through the template, which
escapes it, and never into a chart; and the page's own policy allows no scripts.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from analytics.report import charts, proofs
from analytics.report.verdict import REBUILD, consequence, outcome, verdict
from analytics.result import Compared, PastRun, Result
from rocket_rides import words
from rocket_rides.charts import Chart

NIGHTS = 14  # runs that are listed
PROVED = ("rollup", "receipts", "outbox")

_pages = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_pages.filters.update(
    metres=words.metres,
    signed=words.signed,
    printable=words.printable,
    count=words.count,
    utc=proofs.moment,
)


def as_html(result: Result, past: Sequence[PastRun]) -> str:
    """The page. `past` may include this run's own row, and be in any order."""
    nights = sorted(past, key=lambda run: run.id, reverse=True)[:NIGHTS]
    return _pages.get_template("page.html").render(
        result=result,
        mood="wrong" if not result.agrees else "right" if result.consumers else "none",
        verdict=verdict(result, *proofs.clauses(result)),
        proofs=list(proofs.proofs(result)),
        consequence=consequence(result),
        rebuild=None if result.rebuilt else REBUILD,
        outcome=lambda consumer: outcome(result, consumer),
        nights=[(run, _verdicts(run)) for run in nights],
        whose=proofs.whose,
        drifts=[(consumer, _drift(consumer, result, past)) for consumer in result.consumers],
    )


def _verdicts(run: PastRun) -> list[tuple[str, bool | None]]:
    """Whether the totals agreed, and what else was proved; None where nobody looked."""
    totals = not any(map(run.found_wrong, run.drifts)) if run.drifts else None
    return [("Totals", totals), *((name.capitalize(), run.proofs.get(name)) for name in PROVED)]


def _drift(consumer: Compared, result: Result, past: Sequence[PastRun]) -> Chart:
    this = PastRun(
        result.reconciliation or 0,
        result.started_at,
        {compared.name: compared.drift for compared in result.consumers},
        strays=frozenset(compared.name for compared in result.consumers if compared.stray),
    )
    earlier = [run for run in past if run.id != result.reconciliation]
    runs = [*sorted(earlier, key=lambda run: run.created_at), this]
    drifts = [run.drifts.get(consumer.name) for run in runs]
    moments: list[datetime] = [run.created_at.astimezone(UTC) for run in runs]
    wrong = sum(run.found_wrong(consumer.name) for run in runs)
    compared = sum(drift is not None for drift in drifts)
    summary = f"Wrong in {wrong or 'none'} of {words.count(compared, 'run')}"
    return Chart(charts.drift(moments, drifts), summary)
