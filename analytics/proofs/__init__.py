"""What else is proved each night, beside the totals: rollup, receipts, outbox and ratings."""

from collections.abc import Mapping
from typing import Any

import psycopg

from unified_log.words import printable

NEWEST = """
    SELECT compared -> %(what)s FROM reconciliations
    WHERE compared -> %(what)s ? 'proved_upto' ORDER BY id DESC LIMIT 1
"""
# The totals' and the rollup's type, and that of the ratings.
PROVED = ["ride.create", "rating.create"]
UNPROVED = """
    SELECT DISTINCT type FROM checkpoints CROSS JOIN unnest(types) type
    WHERE type <> ALL(%s) ORDER BY type
"""


def unproved(connection: psycopg.Connection) -> list[str]:
    """A note about each type that a consumer handles and no proof reads; usually none."""
    return [
        f"No proof reads {printable(type_)}: its consumers are compared with nothing."
        for (type_,) in connection.execute(UNPROVED, [PROVED])
    ]


def newest(connection: psycopg.Connection, what: str) -> Mapping[str, Any]:
    """What the newest run that looked at the rollup, or at the receipts, says of them."""
    row = connection.execute(NEWEST, {"what": what}).fetchone()
    return row[0] if row else {}
