"""What else is proved each night, beside the totals: the rollup, the receipts and the outbox."""

import psycopg

NAMED = 10  # rides, of those that are wrong in one way; the others are counted

PROVED_UPTO = """
    SELECT (compared -> %(what)s ->> 'proved_upto')::bigint FROM reconciliations
    WHERE compared -> %(what)s ? 'proved_upto' ORDER BY id DESC LIMIT 1
"""


def proved_upto(connection: psycopg.Connection, what: str) -> int:
    """The ride up to which the newest run has proved the rollup, or the receipts; 0 if none has."""
    row = connection.execute(PROVED_UPTO, {"what": what}).fetchone()
    return int(row[0]) if row else 0
