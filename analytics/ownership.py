"""Which database a warehouse belongs to, and whether its rides are still that database's.

Databases that share a term (`unified_log.terms`) share all rides up to where that term began, and
those sent under it up to where the next one begins. A database that was restored to an earlier
time, or failed over with loss, continues under other terms; a copy that lost nothing continues
under the same ones.

Each run says, in its commit, from which database, and under which term, its rides were read.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import psycopg

from analytics.ledger import Owner
from unified_log import terms
from unified_log.errors import Unavailable

MAY_ASK_FOR_THE_CLUSTER = "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')"
# Every role may ask, unless that was revoked. A copy of the cluster's files has the same id.
THIS_DATABASE = """
    SELECT format('%s-%s', system_identifier, pg_database.oid)
    FROM pg_control_system(), pg_database WHERE datname = current_database()
"""
START = "SELECT cell_start()"


class History(NamedTuple):
    """What distinguishes this database and its past from all others."""

    database_id: str  # "" when we may not ask
    newest: str  # the newest term; "" before the first
    ranges: Mapping[bytes, terms.Range]  # of all its terms, including replaced ones
    last_sent: int
    start: int = 0  # the position before the first of this database's cell

    def owner(self, upto: int) -> Owner:
        """This database, as the one that a run has read rides from, up to the position `upto`."""
        return Owner(upto, self.database_id, self.newest)

    def end_of(self, name: str) -> int:
        """The last ride that a database with this term shares with us; -1 when we don't have it.

        "" stands for the time before the first term.
        """
        rides = self.ranges.get(name.encode())
        return min(rides.upto, self.last_sent) if rides else -1


def history_of(database_id: str, rows: list[Any], last_sent: int) -> History:
    """A history from its terms, as terms.ALL returns them."""
    known = terms.Terms()
    ranges = known.update(rows, last_sent)
    return History(database_id, known.newest or "", ranges, last_sent)


def history(connection: psycopg.Connection, last_sent: int) -> History:
    """Read this database's history, in the caller's snapshot."""
    database_id = ""
    if connection.execute(MAY_ASK_FOR_THE_CLUSTER).fetchone() == (True,):
        [(database_id,)] = connection.execute(THIS_DATABASE)
    [(rows,)] = connection.execute(terms.ALL)
    [(start,)] = connection.execute(START)
    return history_of(database_id, rows, last_sent)._replace(start=start)


def why_rebuild(root: str, owners: Sequence[Owner], ours: History) -> str:
    """Why the rides of the warehouse at `root` can't be relied on; "" when they can.

    The newest of its `owners` is the last. Raises Unavailable when they are another database's.
    """
    if not owners or has_all(owners[-1], ours):
        return ""
    if not any(_is_ours(owner, ours) for owner in owners):
        raise Unavailable(f"{root} belongs to another database: set another WAREHOUSE_DIR")
    return (
        "no longer matches this database, which was restored to an earlier time, or failed over"
        " with loss"
    )


def has_all(newest: Owner, ours: History) -> bool:
    """Whether this database still has exactly the rides that were read from `newest`."""
    here = newest.term != "" or newest.database_id == ours.database_id
    return here and newest.upto <= ours.end_of(newest.term)


def was_repaired(newest: Owner, ours: History) -> bool:
    """Whether a repair has revoked the terms since rides were read from `newest`, by a run of ours.

    A restore to before that run would have lost the run, too: the caller has to know it.
    """
    same = newest.database_id == ours.database_id
    return same and newest.upto <= ours.last_sent and not has_all(newest, ours)


def require_no_repair(connection: psycopg.Connection, then: History) -> None:
    """Raise Unavailable if a repair since `then` may have added rides to those settled by then."""
    if not has_all(then.owner(then.last_sent), history(connection, terms.last_sent(connection))):
        raise Unavailable(
            "stranded rides were counted meanwhile: the next run reads everything again"
        )


def _is_ours(owner: Owner, ours: History) -> bool:
    known_term = owner.term != "" and ours.end_of(owner.term) >= 0
    return known_term or (owner.database_id != "" and owner.database_id == ours.database_id)
