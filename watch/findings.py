"""What the reconciliation's runs say, in sentences: what awaits a person, is late, or failed.

Each returns an empty text where there is nothing to say. What to do comes before a finding's own
words, which may be of any length: the page shows the beginning.
"""

from datetime import datetime

from rocket_rides.words import command
from unified_log.words import age, count, printable
from watch.facts import MOST, Database
from watch.runs import HELD, RECOUNTS, CompletedRun, Finding

# Seconds. A run comes every night, and is tried again for hours if it fails.
RUNS_LATE = 36 * 3600.0
# The kinds of findings about readers.
GONE, BEHIND = "reader_gone", "reader_behind"


def named(run: CompletedRun) -> str:
    """What a person calls it: its number is not that of a row in `reconciliations`."""
    return f"run {run.id} of the reconciliation"


def since(moment: datetime, at: datetime) -> str:
    """The age of a moment, in words."""
    return age((at - moment).total_seconds())


def about(findings: list[Finding]) -> str:
    """The words of the first of them."""
    said = findings[0].about.rstrip(".") if findings else ""
    return f"; found: {printable(said)}" if said else ""


def holds(run: CompletedRun) -> str:
    """That a person has to decide, and how."""
    if run.status != HELD:
        return ""
    held = f"{named(run)} holds {count(run.held, 'finding', MOST)}"
    if run.approved:
        return f"{held}, which is approved: the next run acts on it, if it finds the same again"
    first = about([each for each in run.findings if each.held])
    return (
        f"{held} until a person decides: {command('analytics.approve')} {run.id} --reason ..."
        f" has the next run believe Postgres, if docs/reconcile.md shows that it is right{first}"
    )


def gone(run: CompletedRun) -> str:
    """That readers were missing."""
    if not (readers := run.open.get(GONE)):
        return ""
    first = about([each for each in run.findings if each.kind == GONE])
    return (
        f"{named(run)} missed {count(readers, 'reader', MOST)}: start it again, or remove it"
        f" (docs/production.md#remove-a-reader), and then run make reconcile{first}"
    )


def behind(run: CompletedRun) -> str:
    """That readers stood before the position of an earlier run."""
    if not (readers := run.open.get(BEHIND)):
        return ""
    first = about([each for each in run.findings if each.kind == BEHIND])
    return (
        f"{named(run)} found {count(readers, 'reader', MOST)} far behind:"
        f" once it has caught up, run make reconcile{first}"
    )


def wrong(run: CompletedRun) -> str:
    """That anything else was wrong, which is repaired, or which a person repairs by hand."""
    readers = GONE, BEHIND, RECOUNTS
    others = {kind: found for kind, found in run.open.items() if kind not in readers}
    if (found := sum(others.values()) - run.held) <= 0:
        return ""
    first = about([each for each in run.findings if not each.held and each.kind in others])
    return (
        f"{named(run)} found {count(found, 'thing', MOST)} wrong:"
        f" docs/reconcile.md says what repairs it{first}"
    )


def late(database: Database, at: datetime) -> str:
    """That no run was completed for too long, or ever, while there are rides."""
    run, oldest = database.completed_run, database.oldest_ride_at
    last = run.at if run else oldest
    if not last or not database.rides.newest or (at - last).total_seconds() <= RUNS_LATE:
        return ""
    lacking = "the last completed run of the reconciliation ended"
    if not run:
        lacking = "no run of the reconciliation was completed since the first ride,"
    return (
        f"{lacking} {since(last, at)} ago: the process reconciler says why; make reconcile runs one"
        " now"
    )


def failed(database: Database, at: datetime) -> str:
    """That runs have failed since the last completed one, and why the newest did."""
    if not (run := database.failed_run):
        return ""
    runs = count(database.failed_runs, "run", MOST)
    why = f": {printable(run.reason.rstrip('.'))}" if run.reason else ""
    return f"{runs} of the reconciliation failed, the last {since(run.since, at)} ago{why}"
