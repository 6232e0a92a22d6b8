"""Whether the tables are what they seem: a view, or another schema's table, could hide rows.

The session's `row_security = off` turns a policy that would hide rows into an error. This does the
same for whatever else could stand in a table's place.
"""

from collections.abc import Mapping

import psycopg

from unified_log.errors import Unavailable
from unified_log.words import printable

# Whatever a run reads or writes, but for log_records: that is a view, whose rows are counted.
JUDGED = (
    "rides", "ratings", "staged_log_records", "streamer_state", "terms", "checkpoints",
    "held_out_records", "consumer_states", "rating_sums", "removed_readers", "ride_minutes",
    "rollup_state", "set_aside_minutes", "receipts", "receipts_state", "reconciliations", "runs",
    "approvals", "resets", "recomputations", "closings",
)  # fmt: skip
# An application that has lifted this job may have no ratings.
TABLES = """
    SELECT name, to_regclass(name)::oid, relkind IN ('r', 'p') AND relnamespace = (
        SELECT relnamespace FROM pg_class WHERE oid = 'alembic_version'::regclass
    ) FROM unnest(%s::text[]) name JOIN pg_class ON pg_class.oid = to_regclass(name)
"""


def plain_tables(connection: psycopg.Connection) -> Mapping[str, int]:
    """The oid of each table. Raises Unavailable if one is not a plain table of the schema."""
    found = connection.execute(TABLES, [list(JUDGED)]).fetchall()
    if others := sorted(name for name, _, plain in found if not plain):
        raise Unavailable(
            f"{printable(', '.join(others))}: not a table of the schema that has alembic_version,"
            " but a view, or another schema's (see search_path)"
        )
    return {name: oid for name, oid, _ in found}


def require_same(connection: psycopg.Connection, then: Mapping[str, int]) -> None:
    """Raise Unavailable if one of them was replaced since."""
    now = plain_tables(connection)
    if changed := sorted(name for name in {*now, *then} if now.get(name) != then.get(name)):
        raise Unavailable(f"{', '.join(changed)}: replaced by another table meanwhile")
