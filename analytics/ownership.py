"""Which database a warehouse belongs to, and whether its rides are still that database's.

Databases that share a term (`rocket_rides.terms`) share all rides up to where that term began, and
those sent under it up to where the next one begins. A database that was restored to an earlier
time, or failed over with loss, continues under other terms; a copy that lost nothing continues
under the same ones.

Each run's manifest says from which database, and under which term, its rides were read.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import psycopg

from analytics.ledger import Broken, Manifest
from rocket_rides.errors import Unavailable
from rocket_rides.terms import ALL, Range, Terms

MAY_ASK_FOR_THE_CLUSTER = "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')"
# Every role may ask, unless that was revoked. A copy of the cluster's files has the same id.
THIS_DATABASE = """
    SELECT format('%s-%s', system_identifier, pg_database.oid)
    FROM pg_control_system(), pg_database WHERE datname = current_database()
"""


class History(NamedTuple):
    """What distinguishes this database and its past from all others."""

    database_id: str  # "" when we may not ask
    newest: str  # the newest term; "" before the first
    ranges: Mapping[bytes, Range]  # of all its terms, including void ones
    last_sent: int

    def end_of(self, name: str) -> int:
        """The last ride that a database with this term shares with us; -1 when we don't have it.

        "" stands for the time before the first term.
        """
        rides = self.ranges.get(name.encode())
        return min(rides.upto, self.last_sent) if rides else -1


def history_of(database_id: str, rows: list[Any], last_sent: int) -> History:
    """A history from its terms, as terms.ALL returns them."""
    known = Terms()
    ranges = known.update(rows, last_sent)
    return History(database_id, known.newest or "", ranges, last_sent)


def history(connection: psycopg.Connection, last_sent: int) -> History:
    """Read this database's history, in the caller's snapshot."""
    database_id = ""
    if connection.execute(MAY_ASK_FOR_THE_CLUSTER).fetchone() == (True,):
        [(database_id,)] = connection.execute(THIS_DATABASE)
    [(rows,)] = connection.execute(ALL)
    return history_of(database_id, rows, last_sent)


def with_owner(manifest: Manifest, ours: History) -> Manifest:
    """The manifest, with the database that the run has read its rides from."""
    return msgspec.structs.replace(manifest, database_id=ours.database_id, term=ours.newest)


def require_ours(manifests: Sequence[Manifest | Broken], ours: History) -> None:
    """Raise Unavailable when these runs are another database's."""
    why_rebuild(manifests, ours)


def why_rebuild(manifests: Sequence[Manifest | Broken], ours: History) -> str:
    """Why the rides of these runs, oldest first, can't be relied on; "" when they can.

    Asks those that can be read. Raises Unavailable when they are another database's.
    """
    readable = [manifest for manifest in manifests if isinstance(manifest, Manifest)]
    if not readable:
        return ""
    newest = readable[-1]
    if newest.term is None:
        return "was made by an earlier version, and does not say which database it is of"
    here = newest.term != "" or newest.database_id == ours.database_id
    if here and newest.upto <= ours.end_of(newest.term):
        return ""
    if any(_is_ours(manifest, ours) for manifest in readable):
        return (
            "holds rides that this database has lost: it was restored to an earlier time,"
            " or failed over with loss, or rides were mended since"
        )
    raise Unavailable("the warehouse is another database's: set another WAREHOUSE_DIR")


def _is_ours(manifest: Manifest, ours: History) -> bool:
    known_term = bool(manifest.term) and ours.end_of(manifest.term or "") >= 0
    return known_term or (manifest.database_id or None) == ours.database_id
