"""What else is proved each night, beside the totals: rollup, receipts, outbox and ratings."""

from collections.abc import Mapping
from typing import Any

import psycopg

NEWEST = """
    SELECT compared -> %(what)s FROM reconciliations
    WHERE compared -> %(what)s ? 'proved_upto' ORDER BY id DESC LIMIT 1
"""


def newest(connection: psycopg.Connection, what: str) -> Mapping[str, Any]:
    """What the newest run that looked at the rollup, or at the receipts, says of them."""
    row = connection.execute(NEWEST, {"what": what}).fetchone()
    return row[0] if row else {}
