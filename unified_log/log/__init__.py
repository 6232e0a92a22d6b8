"""The log: a Redis stream whose entries form a chain."""

from unified_log.log.entries import (
    CUT_LONGER,
    KEPT,
    LARGEST_ID,
    START,
    Data,
    Entry,
    Invalid,
    Position,
    Record,
    as_numbers,
    cut,
    decode,
    entries,
    parse_data,
)
from unified_log.log.errors import Clustered, Forbidden, LogExhausted, LogFull, naming_the_server
from unified_log.log.stream import Log, Packed, Staged, packed

__all__ = [
    "CUT_LONGER",
    "KEPT",
    "LARGEST_ID",
    "START",
    "Clustered",
    "Data",
    "Entry",
    "Forbidden",
    "Invalid",
    "Log",
    "LogExhausted",
    "LogFull",
    "Packed",
    "Position",
    "Record",
    "Staged",
    "as_numbers",
    "cut",
    "decode",
    "entries",
    "naming_the_server",
    "packed",
    "parse_data",
]
