"""Healing from the view: the records that the log did not contain, a page at a time.

Each page is read before the transaction that counts it, since what is settled does not change.
"""

from collections.abc import Callable, Iterable, Mapping
from heapq import merge
from operator import attrgetter
from typing import Any

import msgspec
import psycopg

from unified_log.log import Invalid, Record
from unified_log.readers.gaps import Gap

PAGE = 1000  # records, at most
# Without statistics, the planner would sort the rest of a long gap for each page of it.
BY_INDEX = """
    SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)
"""
RECORDS = """
    SELECT id, type, data::text FROM log_records
    WHERE id > %s AND id <= %s AND type = ANY(%s) ORDER BY id LIMIT %s
"""

Types = Mapping[bytes, Callable[[Record], Any]]


# Made by the thousand, like the entries (`unified_log/log/entries.py`).
class Item(msgspec.Struct, frozen=True, gc=False):
    """A record for the handler: what its type's function made of it, or why that refused it."""

    position: int
    type: bytes
    record: Any  # an Invalid where it was refused


class View:
    """The view of all records, for a reader that handles `types`. Methods raise psycopg.Error."""

    def __init__(self, connection: "psycopg.Connection[Any]", types: Types) -> None:
        self._connection = connection
        self._types = types
        self._names = [name.decode() for name in types]

    def missing(self, gaps: Iterable[Gap], page: int) -> list[Item]:
        """The records of these gaps, in order: all of them, or the first `page`."""
        found: list[Item] = []
        for gap in gaps:
            if len(found) < page:
                found += self._page(gap.after, gap.upto, page - len(found))
        return found

    def record(self, position: int) -> Item | None:
        """The record at a position, of one of these types."""
        return next(iter(self._page(position - 1, position, 1)), None)

    def _page(self, after: int, upto: int, most: int) -> list[Item]:
        with self._connection.transaction():
            self._connection.execute(BY_INDEX)
            rows = self._connection.execute(RECORDS, [after, upto, self._names, most]).fetchall()
        return [
            self._item(Record(position, type_.encode(), data.encode(), after))
            for position, type_, data in rows
        ]

    def _item(self, record: Record) -> Item:
        try:
            return Item(record.id, record.type, self._types[record.type](record))
        except Invalid as why:
            return Item(record.id, record.type, why)
        except Exception as error:
            error.add_note(f"while it parsed {record.type.decode()}, position {record.id}")
            raise


def in_order(read: list[Item], healed: list[Item]) -> list[Item]:
    """What was read and what was healed, by position."""
    return [*merge(read, healed, key=attrgetter("position"))] if healed else read
