"""Decodes pgoutput, the format of Postgres' logical decoding, in protocol version 1.

See "Logical Replication Message Formats" in Postgres' manual. Values stay text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import Literal

import msgspec

ROW_OF = {b"I": b"N", b"U": b"N", b"D": b"KO"}  # which tuple of the message is the row

Row = dict[str, str | None]


class Change(msgspec.Struct, frozen=True, gc=False):
    """A change of a row: the columns that are asked for, or the key of a deleted one."""

    what: Literal["I", "U", "D"]  # inserted, updated, deleted
    table: str
    row: Row


Did = Mapping[str, list[Change]]  # by table


class Message(BytesIO):
    def number(self, size: int) -> int:
        return int.from_bytes(self.read(size), "big", signed=True)

    def string(self) -> str:
        return b"".join(iter(lambda: self.read(1), b"\0")).decode()

    def tuple(self, names: Sequence[str]) -> Row:
        """The values of a row, without those that did not change and are stored apart (TOAST)."""
        row: Row = {}
        self.number(2)
        for name in names:
            match self.read(1):
                case b"n":
                    row[name] = None
                case b"t":
                    row[name] = self.read(self.number(4)).decode()
        return row


class Decoder:
    """Decodes one stretch, which names each table before its rows; `tables` is what to keep."""

    def __init__(self, tables: Mapping[str, Sequence[str]]) -> None:
        self._asked = tables
        self._tables: dict[int, tuple[str, list[str]]] = {}

    def transactions(self, messages: Iterable[bytes]) -> Iterator[tuple[int, list[Change]]]:
        """What each commit did, after the position in the WAL behind it."""
        changes: list[Change] = []
        for data in messages:
            message = Message(data)
            match kind := message.read(1):
                case b"B":
                    changes = []
                case b"R":
                    self._learn(message)
                case b"I" | b"U" | b"D":
                    changes.append(self._change(kind, message))
                case b"T":
                    raise ValueError("nobody may empty a table")
                case b"C":
                    message.read(9)  # flags, and where the commit begins
                    yield message.number(8), changes

    def _learn(self, message: Message) -> None:
        table = message.number(4)
        message.string()  # the schema
        name = message.string()
        message.read(1)  # the replica identity
        columns = []
        for _ in range(message.number(2)):
            message.read(1)
            columns.append(message.string())
            message.read(8)  # the type
        self._tables[table] = name, columns

    def _change(self, kind: bytes, message: Message) -> Change:
        name, columns = self._tables[message.number(4)]
        while message.read(1) not in ROW_OF[kind]:
            message.tuple(columns)  # the row's former key
        row = message.tuple(columns)
        asked = {column: row[column] for column in self._asked[name] if column in row}
        if kind == b"D":
            asked = {column: value for column, value in asked.items() if value is not None}
        return Change(kind.decode(), name, asked)  # type: ignore[arg-type]
