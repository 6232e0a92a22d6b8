"""The log: a Redis stream whose entries form a chain.

An entry is `XADD rocket-rides-log * data {"id": 521, "distance": 539.837} prev 520 term 5f3a…`:
`data` is the record's public JSON; `prev` the id of the record before it, so that a reader at 520
knows it has missed nothing, and a reader further back knows that it has; `term` is the leader's,
and tells a reader whether the entry comes from its own database: see `rocket_rides.terms`.
"""

from rocket_rides.log.entries import (
    LARGEST_ID,
    START,
    Entry,
    Invalid,
    Record,
    as_numbers,
    decode,
    entries,
)
from rocket_rides.log.errors import Forbidden, LogExhausted, LogFull, naming_the_server
from rocket_rides.log.stream import Log

__all__ = [
    "LARGEST_ID",
    "START",
    "Entry",
    "Forbidden",
    "Invalid",
    "Log",
    "LogExhausted",
    "LogFull",
    "Record",
    "as_numbers",
    "decode",
    "entries",
    "naming_the_server",
]
