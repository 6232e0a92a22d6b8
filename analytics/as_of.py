"""What a night has found, as the log of the warehouse's table keeps it.

For as long as that goes back (`WAREHOUSE_RETENTION_DAYS`). Needs neither Spark nor Postgres.
"""

from datetime import datetime

import msgspec

from analytics.report.text import as_text
from analytics.result import Result
from analytics.table import Table
from rocket_rides.errors import Unavailable


class Named(msgspec.Struct):
    """Of a result, what a night is named by."""

    started_at: datetime
    reconciliation: int | None


def as_of(table: Table, night: str) -> str:
    """What a night printed, but for how long it took.

    `night` is the UTC date on which it began, of several the last, or its reconciliation's id.
    Raises Unavailable when the log has no such night, or another version has written it.
    """
    for each in table.nights():
        named = msgspec.json.decode(each.result, type=Named)
        began = named.started_at.date()
        if night in (str(began), str(named.reconciliation)):
            try:
                return as_text(msgspec.json.decode(each.result, type=Result), began)
            except msgspec.ValidationError as error:
                raise Unavailable(f"another version has written night {night}: {error}") from None
    raise Unavailable(f"the log of {table.folder} has no night {night}")
