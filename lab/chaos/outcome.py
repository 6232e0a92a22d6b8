"""The outcome of a run: the evidence, the findings of both judges, and a table of figures."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing

from lab.chaos import logs
from lab.chaos.books import check
from lab.chaos.books.clients import double, lost, undone
from lab.chaos.books.receipts import DEAD, DELIVERED
from lab.chaos.books.statements import WHEN_SETTLED
from lab.chaos.books.tables import broken, left_over
from lab.chaos.evidence import Evidence, read_final_state
from lab.chaos.fleet import LONGEST_LOG, STREAM
from lab.chaos.nemesis import REPLACE_POSTGRES
from lab.chaos.play import Play
from lab.chaos.runs import read_warehouse
from lab.chaos.trace.judge import Verdict, judge
from lab.chaos.trace.recording import read
from lab.progress import counted
from unified_log.errors import in_one_line


def judged(play: Play) -> tuple[list[str], str]:
    """Of a run that is over: the findings of both judges, and a table."""
    evidence = collected(play)
    found = check(evidence)
    if play.recovery > play.options.recovery:
        took = f"after the last fault it took {play.recovery:.1f} s until rides were counted"
        found.append(f"{took}, but may take only {play.options.recovery:.0f} s")
    verdict = judge(lambda: read(play.trace), LONGEST_LOG)
    replacements = sum(fault.kind in REPLACE_POSTGRES for fault in play.nemesis.struck)
    replacements += len(play.nemesis.failures)  # a fault that failed may have replaced it, too
    found += of_the_trace(verdict, len(evidence.final.rides), replacements)
    return found, table(play, evidence, verdict)


def of_the_trace(verdict: Verdict, rides: int, replacements: int) -> Iterator[str]:
    """What the judge of the trace finds, and whether the recording was complete enough for it."""
    if verdict.refused:
        yield f"the specification refuses {verdict.refused}"
    elif rides and not verdict.met["counts"]:
        yield f"there are {rides} rides, and the recording tells of none that was counted"
    if (lives := verdict.met["begins a life"]) > 1 + replacements:
        yield f"the recording has {lives} lives, and Postgres was replaced {replacements} times"


def collected(play: Play) -> Evidence:
    fleet = play.fleet
    found = play.errors + play.journal.troubles
    found += [f"a fault failed: {failure}" for failure in play.nemesis.failures]
    found += [onlooker.error for onlooker in play.onlookers if onlooker.error]
    found += [failure for server in fleet.servers for failure in server.failures]
    found += logs.said(fleet.services)
    found += [line for server in fleet.servers for line in logs.broken(server.log)]
    if not play.tables.looks:
        found.append("nobody has looked at the tables on the way")
    if play.nemesis.moot and not play.nemesis.struck:
        found.append("no fault could be injected on this machine")
    with closing(fleet.connect()) as connection, fleet.redis_client() as client:
        found += [*play.tables.found, *broken(connection, WHEN_SETTLED)]
        found += left_over(connection, client, STREAM)
        final = read_final_state(connection)
    warehouse, runs = None, play.scene.runs
    if runs:
        try:
            warehouse = [*read_warehouse(fleet.warehouse_dir)]
        except Exception as error:  # whatever the library raises
            found.append(f"the warehouse can't be read: {in_one_line(error)}")
    return Evidence(
        play.journal.asks,
        final,
        fleet.services.exits,
        found,
        restores=play.scene.restores,
        deliveries=fleet.receiver.deliveries,
        settled_at=play.settled_at,
        runs=runs.all if runs else [],
        last_runs=play.last_runs,
        warehouse=warehouse,
    )


def table(play: Play, evidence: Evidence, verdict: Verdict) -> str:
    struck = Counter(fault.kind for fault in play.nemesis.struck)
    moot = sorted(play.nemesis.moot - struck.keys())
    outcomes = Counter(evidence.final.outcomes.values())
    figures = {
        "rides": f"{len(evidence.final.rides):,}",
        "faults": f"{struck.total()}: {counted(struck.elements())}",
        "faults that could not be injected": ", ".join(moot) or "none",
        "steps that the specification allowed": counted(verdict.met.elements()),
        "recovery after the last fault": f"{play.recovery:.1f} s",
        "receipts": f"{outcomes[DELIVERED]:,} delivered; {outcomes[DEAD]:,} dead, as meant",
        "nightly runs": counted(run.end for run in evidence.runs),
        "tampered with": ", ".join(filter(None, (run.tampered for run in evidence.runs)))
        or "nothing",
        "undone by restores and fail-overs": f"{undone(evidence):,}",
        "lost": f"{len(lost(evidence))}",
        "double": f"{len(double(evidence))}",
    }
    return "\n".join(f"{name:<36} | {figure}" for name, figure in figures.items())
