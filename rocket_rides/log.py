"""The log: a Redis stream whose entries form a chain. All that is said to Redis is said here.

An entry is `XADD rocket-rides-log * data {"id": 521, "distance": 539.837} prev 520`: `data` is
the record's public JSON, `prev` the id of the record before it, so that a reader that stands at
520 knows it has missed nothing, and one that stands lower knows that it has.
"""

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
import redis

from rocket_rides.distance import is_exact

# One script call is one atomic step: the whole batch is in the log, or nothing of it.
APPEND = """
local prev = ARGV[1]
for i = 2, #ARGV, 2 do
  redis.call('XADD', KEYS[1], '*', 'data', ARGV[i + 1], 'prev', prev)
  prev = ARGV[i]
end
"""

START = "0-0"
SOCKET_TIMEOUT = 5.0

_DIGITS = re.compile(rb"0|[1-9][0-9]{0,18}")


class LogFull(Exception):
    """Redis refuses to append for want of memory."""


class Entry(NamedTuple):
    """What the stream holds under one id: field names and values in turn, as bytes."""

    redis_id: str
    fields: list[bytes]


class Record(NamedTuple):
    """A true entry. `distance` is in metres, `prev` the id of the record before it."""

    id: int
    prev: int
    distance: Decimal


class _Data(msgspec.Struct):
    id: int
    distance: msgspec.Raw


_decode_data = msgspec.json.Decoder(_Data).decode


class Invalid(ValueError):
    """The entry is not one of ours; the message says why."""


def decode(fields: list[bytes]) -> Record:
    """Read an entry, or raise Invalid. Whether its id has been drawn yet is for the caller."""
    values = dict(zip(fields[::2], fields[1::2], strict=False))
    try:
        data, prev_digits = values[b"data"], values[b"prev"]
    except KeyError as missing:
        raise Invalid(f"no field {missing.args[0].decode()!r}") from None
    if not _DIGITS.fullmatch(prev_digits):
        raise Invalid("prev is not a record's id")
    try:
        ride = _decode_data(data.decode())
        # JSON's grammar has no NaN and no Infinity; a string or null is refused by Decimal.
        distance = Decimal(bytes(ride.distance).decode())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"data is not a record: {error}") from None
    except ArithmeticError:
        raise Invalid("distance is not a decimal number") from None
    prev = int(prev_digits)
    if not prev < ride.id:
        raise Invalid(f"prev {prev} is not below id {ride.id}")
    if not is_exact(distance):
        raise Invalid(f"distance {distance:.6g} is out of range")
    return Record(ride.id, prev, distance)


class Log:
    """The stream `name` on one Redis connection. Every method raises redis.RedisError."""

    def __init__(self, url: str, name: str) -> None:
        # The processes retry whole batches; a command tried again underneath them would not know
        # whether it was carried out. RESP2, so that entries come as the flat lists they are.
        self.redis = redis.Redis.from_url(
            url,
            protocol=2,
            retry=None,
            socket_timeout=SOCKET_TIMEOUT,
            socket_connect_timeout=SOCKET_TIMEOUT,
            single_connection_client=True,
        )
        self.redis.response_callbacks.clear()
        self.name = name
        self._append = self.redis.register_script(APPEND)

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, *_: object) -> None:
        self.redis.close()

    def append(self, records: Iterable[tuple[int, str]], prev: int) -> None:
        """Append (id, JSON) pairs in one atomic step, the first one chained to `prev`.

        Raises LogFull when Redis has no memory left for it; then nothing was appended.
        """
        arguments: list[int | str] = [prev]
        for record in records:
            arguments += record
        try:
            self._append(keys=[self.name], args=arguments)
        except redis.ResponseError as error:
            # Redis 6.2 wraps the refusal in an error about the script; 7 says it plainly.
            if isinstance(error, redis.exceptions.OutOfMemoryError) or "OOM" in str(error):
                raise LogFull("Redis is out of memory and refuses to append") from None
            raise

    def read(self, after: str, count: int, wait: float = 0) -> list[Entry]:
        """Up to `count` entries after the id `after`; waits up to `wait` seconds for the first."""
        blocking = ["BLOCK", max(1, int(wait * 1000))] if wait else []
        reply = self._command("XREAD", "COUNT", count, *blocking, "STREAMS", self.name, after)
        return _entries(reply[0][1]) if reply else []

    def newest(self, count: int) -> list[Entry]:
        """The last `count` entries, newest first."""
        return _entries(self._command("XREVRANGE", self.name, "+", "-", "COUNT", count))

    def last_id(self) -> str:
        """The greatest id the stream has given out; 0-0 when there is no stream."""
        try:
            reply = self._command("XINFO", "STREAM", self.name)
        except redis.ResponseError as error:
            if "no such key" in str(error):
                return START
            raise
        facts = dict(zip(reply[::2], reply[1::2], strict=True))
        last: str = facts[b"last-generated-id"].decode()
        return last

    def length(self) -> int:
        """How many entries the stream holds."""
        return int(self._command("XLEN", self.name))

    def trim_before(self, redis_id: str, *, exactly: bool = False) -> int:
        """Drop entries with smaller ids; unless `exactly`, only where whole nodes can go."""
        return self._trim("MINID", redis_id, exactly)

    def trim_to(self, length: int, *, exactly: bool = False) -> int:
        """Drop the oldest entries until about `length` are left."""
        return self._trim("MAXLEN", length, exactly)

    def _command(self, *words: object) -> Any:
        return self.redis.execute_command(*words)  # type: ignore[no-untyped-call]

    def _trim(self, strategy: str, threshold: str | int, exactly: bool) -> int:
        sign = "=" if exactly else "~"
        return int(self._command("XTRIM", self.name, strategy, sign, threshold))

    def durability_warnings(self) -> list[str]:
        """What of Redis' configuration endangers the log; empty when all is well."""
        wanted = {
            "appendonly": "yes",
            "appendfsync": "always",
            "maxmemory-policy": "noeviction",
        }
        found = {}
        try:
            for name in wanted:
                reply = self._command("CONFIG", "GET", name)
                found[name] = reply[1].decode() if reply else "unknown"
        except redis.ResponseError:  # managed servers often forbid CONFIG
            return ["Redis does not tell its configuration: its durability is not checked"]
        return [
            f"Redis has {name} {found[name]}, not {value}: it may lose entries, which then heal"
            for name, value in wanted.items()
            if found[name] != value
        ]


def _entries(reply: list[Any]) -> list[Entry]:
    return [Entry(redis_id.decode(), fields) for redis_id, fields in reply]


def as_numbers(redis_id: str) -> tuple[int, int]:
    """A stream id in the form in which ids compare."""
    milliseconds, _, sequence = redis_id.partition("-")
    return int(milliseconds), int(sequence)
