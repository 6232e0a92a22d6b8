"""Whether a period can be closed: each reason why not, in one sentence."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import psycopg

from analytics import runs
from analytics.closings import Row, altered, newest
from analytics.evidence import Known
from analytics.findings import READER_RECOUNTS
from analytics.freeze import Frozen
from analytics.ledger import Closing
from analytics.readers import by_name, called, idle_watermarks
from analytics.runs import Past
from analytics.upto import exactly
from rocket_rides.words import command
from unified_log.database import one_row
from unified_log.errors import Unavailable
from unified_log.words import count

MAY_CLOSE = "SELECT has_table_privilege('closings', 'INSERT')"
READERS = "SELECT kind, name, position FROM current_checkpoints"  # also those from outside
FIRST = f"{command('analytics.reconcile')} first"


def require_agreement(connection: psycopg.Connection) -> Past:
    """The last run that completed. Raises Unavailable unless it has found nothing.

    Also where this role may not close anything: better before all is read.
    """
    if one_row(connection.execute(MAY_CLOSE)) != (True,):
        raise Unavailable("this role may not write to closings")
    last = runs.last_completed(connection)
    if last is None:
        raise Unavailable(f"no run has completed: {FIRST}")
    if found := [each for each in last.findings if each["kind"] != READER_RECOUNTS]:
        more = f" (and {count(len(found) - 1, 'other finding')})" if len(found) > 1 else ""
        raise Unavailable(f"run {last.id} has found something: {found[0]['about']}{more}")
    return last


def require_known(known: Known) -> None:
    """Raise Unavailable unless the warehouse is as the last run left it."""
    if known.everything or not (known.is_witness and known.is_proven):
        raise Unavailable(f"the warehouse is not as the last run left it: {FIRST}")


def require_old(ends: datetime, now: datetime, days: int) -> None:
    """Raise Unavailable unless all clients have stopped repeating requests from before `ends`."""
    if ends > now - timedelta(days=days):
        raise Unavailable(
            f"rides until {exactly(ends)} are younger than IDEMPOTENCY_DAYS, {days}:"
            " they can be closed so many days later"
        )


def require_next(rows: Sequence[Row], known: Sequence[Closing], position: int) -> None:
    """Raise Unavailable unless this is past all that is closed, and nothing there was altered.

    `known` are those that the last run has seen.
    """
    for number, what in altered(rows, known):
        raise Unavailable(f"closing {number} {what}")
    if (last := newest(rows)) and position <= last.position:
        raise Unavailable(
            f"closing {last.id} is up to position {last.position}, and this would be up to"
            f" {position}"
        )


def require_counted(last: Past, position: int) -> None:
    """Raise Unavailable unless the last run, which found nothing, has compared a total up to there.

    Rides that nobody had counted by then are what Postgres alone says; so it is without totals.
    """
    stood = [at for (kind, _), at in last.positions().items() if kind == "total"]
    if stood and max(stood) < position:
        raise Unavailable(
            f"run {last.id} has compared totals up to position {max(stood)}, and this would be up"
            f" to {position}: {FIRST}"
        )


def require_past(connection: psycopg.Connection, frozen: Frozen, position: int) -> None:
    """Raise Unavailable if a reader, or one of the watermarks, is not there yet.

    The receipts' `inbox_to` is never below their `complete_to`.
    """
    idle = idle_watermarks(connection, by_name(frozen.readers))
    stand = [
        *connection.execute(READERS),
        *((each.kind, each.name, each.position) for each in frozen.readers),
    ]
    places = [(at, called(kind, name)) for kind, name, at in stand if (kind, name) not in idle]
    at, who = min(places, default=(position, "nobody"))
    if at < position:
        raise Unavailable(f"{who} stands at position {at}, and this would be up to {position}")
