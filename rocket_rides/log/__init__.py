"""The log: a Redis stream whose entries form a chain. Every command to Redis is issued here.

An entry is `XADD rocket-rides-log * data {"id": 521, "distance": 539.837} prev 520 term 5f3a…`:
`data` is the record's public JSON; `prev` the id of the record before it, so that a reader at 520
knows it has missed nothing, and a reader further back knows that it has; `term` is the leader's,
and tells a reader whether the entry comes from its own database: see `rocket_rides.terms`.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import Any, cast

import msgspec
import redis
from redis.commands.core import Script

from rocket_rides.distance import is_exact
from rocket_rides.terms import NO_TERM, Term

# One script call is one atomic step: the log gets the whole batch or nothing. The records come
# packed, as one argument: thousands of arguments would take the server a quarter longer.
APPEND = """
local key, term, prev, call = KEYS[1], ARGV[1], ARGV[2], redis.call
local records = cmsgpack.unpack(ARGV[3])
for i = 1, #records, 2 do
  call('XADD', key, '*', 'data', records[i + 1], 'prev', prev, 'term', term)
  prev = records[i]
end
"""

START = "0-0"
LARGEST_ID = 2**63 - 1  # of a record: Postgres' bigint
LONGEST_ID = len(str(LARGEST_ID))
SOCKET_TIMEOUT = 5.0
REPLICAS_TIMEOUT = 0.5  # seconds; a leader that waits holds a transaction open in Postgres

# How a command is refused that a script sends: by 7 and newer, by 6.2, and where it was removed.
SIGNS_OF_REFUSAL = (
    "ACL failure in script",
    "can't run this command",
    "Unknown Redis command",
    "unknown command",
)


class LogFull(Exception):
    """Redis refuses to append because it is out of memory."""


class LogExhausted(Exception):
    """The stream's last entry has the greatest possible id, so none can follow."""


class Forbidden(redis.ResponseError):
    """Redis does not let this user send that command, or does not have it."""


# These are made by the thousand: much faster than a NamedTuple, and the collection of garbage never
# looks at them.
class Entry(msgspec.Struct, frozen=True, gc=False):
    """What the stream holds under one id: alternating field names and values, as bytes."""

    redis_id: str
    fields: list[bytes]


class Record(msgspec.Struct, frozen=True, gc=False):
    """A well-formed entry. `distance` is in metres, `prev` the id of the record before it.

    Whether it is true depends on `term`, which is copied from the entry, or empty if it has none.
    """

    id: int
    prev: int
    distance: Decimal
    term: bytes = NO_TERM


class _Data(msgspec.Struct, gc=False):
    id: int
    distance: Any  # a number with a point or an exponent is a Decimal, from the text as it is


_decode_data = msgspec.json.Decoder(_Data, float_hook=Decimal).decode


class Invalid(ValueError):
    """The entry is not a record; the message says why."""


def decode(fields: list[bytes]) -> Record:
    """Parse an entry, or raise Invalid. Whether to believe it is up to the caller."""
    match fields:
        case [b"data", data, b"prev", prev_digits, b"term", term]:  # as `append` writes them
            pass
        case _:
            values = dict(zip(fields[::2], fields[1::2], strict=False))
            try:
                data, prev_digits = values[b"data"], values[b"prev"]
            except KeyError as missing:
                raise Invalid(f"no field {missing.args[0].decode()!r}") from None
            term = values.get(b"term", NO_TERM)
    if not (prev_digits.isdigit() and len(prev_digits) <= LONGEST_ID):
        raise Invalid("prev is not a record's id")
    try:
        ride = _decode_data(data.decode())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"data is not a record: {error}") from None
    except ArithmeticError:  # an exponent beyond what Decimal holds
        raise Invalid("distance is not a decimal number") from None
    distance = Decimal(ride.distance) if type(ride.distance) is int else ride.distance
    if type(distance) is not Decimal:
        raise Invalid("distance is not a decimal number")
    prev = int(prev_digits)
    if not prev < ride.id <= LARGEST_ID:
        raise Invalid(f"id {ride.id} is not above prev {prev}, or is out of range")
    if not is_exact(distance):
        raise Invalid(f"distance {distance:.6g} is out of range")
    return Record(ride.id, prev, distance, term)


class Log:
    """The stream `name` on one Redis connection. Every method raises redis.RedisError.

    No answer takes longer than `timeout` seconds, unless the URL says otherwise. What is appended
    counts as appended once so many `replicas` have it, too.
    """

    def __init__(
        self, url: str, name: str, timeout: float = SOCKET_TIMEOUT, replicas: int = 0
    ) -> None:
        # The processes retry whole batches; a command retried underneath them might be carried
        # out twice. RESP2, so that entries arrive as flat lists.
        with naming_the_server():
            self.redis = redis.Redis.from_url(
                url,
                protocol=2,
                retry=None,
                socket_timeout=timeout,
                socket_connect_timeout=timeout,
                single_connection_client=True,
            )
        self.redis.response_callbacks.clear()
        self._connection = cast(redis.Connection, self.redis.connection)
        self.name = name
        self._replicas = replicas
        self._append = self.redis.register_script(APPEND)

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, *_: object) -> None:
        self.redis.close()

    def append(self, records: Iterable[tuple[int, str]], prev: int, term: Term) -> None:
        """Append (id, JSON) pairs in one atomic step, the first one chained to `prev`.

        Raises LogFull when Redis is out of memory: then nothing was appended. Raises LogExhausted
        when the stream has no id left: then some of the records may have been. Raises
        redis.ConnectionError when too few replicas have them: this server may have them all.
        """
        with self.appending(records, prev, term):
            pass

    @contextmanager
    def appending(
        self, records: Iterable[tuple[int, str]], prev: int, term: Term
    ) -> Iterator[None]:
        """Append as `append` does, while the block does something else.

        Whatever happens in the block, its end waits for Redis' answer. What the block raises goes
        before what Redis says.
        """
        values: list[str | int | bytes] = [term.name, prev, packed(records)]
        words = ("EVALSHA", self._append.sha, 1, self.name, *values)

        def answer() -> None:
            try:
                self._connection.read_response()
            except redis.exceptions.NoScriptError:  # it was restarted: this loads the script
                self._append(keys=[self.name], args=values)

        with appending_errors():
            self._connection.send_command(*words)  # type: ignore[no-untyped-call]
        try:
            yield
        except BaseException:
            with suppress(redis.RedisError):
                answer()
            raise
        with appending_errors():
            answer()
        self.wait_for_replicas()

    def wait_for_replicas(self) -> None:
        """Wait until the replicas have in memory what this connection has written, if anything.

        Raises redis.ConnectionError when too few have it, or are there at all.
        """
        if self._replicas:
            milliseconds = int(REPLICAS_TIMEOUT * 1000)
            having: int = self.command("WAIT", self._replicas, milliseconds)
            if having < self._replicas:
                raise redis.ConnectionError(f"Redis: {having} of {self._replicas} replicas follow")

    def start_anew(self) -> None:
        """Delete the stream. Readers notice, and heal what they had not read."""
        self.command("UNLINK", self.name)

    def read(self, after: str, count: int, wait: float = 0) -> list[Entry]:
        """Up to `count` entries after the id `after`; waits up to `wait` seconds for the first."""
        blocking = ["BLOCK", max(1, int(wait * 1000))] if wait else []
        reply = self.command("XREAD", "COUNT", count, *blocking, "STREAMS", self.name, after)
        return entries(reply[0][1]) if reply else []

    def range(self, first: str, last: str, count: int) -> list[Entry]:
        """Up to `count` entries with ids from `first` to `last`, both included."""
        return entries(self.command("XRANGE", self.name, first, last, "COUNT", count))

    def last_upto(self, redis_id: str) -> Entry | None:
        """The last entry up to the id."""
        reply = self.command("XREVRANGE", self.name, redis_id, "-", "COUNT", 1)
        return entries(reply)[0] if reply else None

    def last_id(self) -> str:
        """The greatest id that the stream has assigned; 0-0 when there is no stream."""
        try:
            reply = self.command("XINFO", "STREAM", self.name)
        except redis.ResponseError as error:
            if "no such key" in str(error):
                return START
            raise
        facts = dict(zip(reply[::2], reply[1::2], strict=True))
        last: str = facts[b"last-generated-id"].decode()
        return last

    def replication_id(self) -> str:
        """Names the history of writes that this server has; empty where Redis does not tell.

        After a fail-over, or a restart, it is another one.
        """
        try:
            reply: bytes = self.command("INFO", "replication")
        except redis.ResponseError:  # some users may not ask
            return ""
        facts = dict(line.split(":", 1) for line in reply.decode().splitlines() if ":" in line)
        return facts.get("master_replid", "")

    def length(self) -> int:
        """How many entries the stream holds."""
        return int(self.command("XLEN", self.name))

    def clock(self) -> int:
        """Redis' time, in milliseconds: as in the ids of the entries that it appends."""
        seconds, microseconds = self.command("TIME")
        return int(seconds) * 1000 + int(microseconds) // 1000

    def trim_before(self, redis_id: str, *, exactly: bool = False) -> int:
        """Drop entries with smaller ids; unless `exactly`, only where whole nodes can go."""
        return self._trim("MINID", redis_id, exactly)

    def trim_to(self, length: int, *, exactly: bool = False) -> int:
        """Drop the oldest entries until about `length` are left."""
        return self._trim("MAXLEN", length, exactly)

    def command(self, *words: object) -> Any:
        """Send a command. Raises redis.RedisError, with a message that begins with "Redis"."""
        with naming_the_server():
            return self.redis.execute_command(*words)  # type: ignore[no-untyped-call]

    def run(self, script: Script, *values: object) -> Any:
        """Run a script on the stream, in one atomic step. Raises as `command` does."""
        with naming_the_server():
            return script(keys=[self.name], args=values)  # type: ignore[arg-type]

    def _trim(self, strategy: str, threshold: str | int, exactly: bool) -> int:
        sign = "=" if exactly else "~"
        return int(self.command("XTRIM", self.name, strategy, sign, threshold))

    def durability_warnings(self) -> list[str]:
        """Warnings about settings of Redis that endanger the log; empty when there are none."""
        wanted = {
            "appendonly": "yes",
            "appendfsync": "always",
            "maxmemory-policy": "noeviction",
        }
        configured = {}
        try:
            for name in wanted:
                reply = self.command("CONFIG", "GET", name)
                configured[name] = reply[1].decode() if reply else "unknown"
        except redis.ResponseError:  # managed servers often forbid CONFIG
            return ["Redis does not reveal its configuration: its durability can't be checked"]
        return [
            f"Redis has {name} {configured[name]}, not {value}:"
            " a crash may lose entries, which then heal"
            for name, value in wanted.items()
            if configured[name] != value
        ]


def packed(records: Iterable[tuple[int, str]]) -> bytes:
    """The records as APPEND takes them. Ids are text: Lua's numbers have only 53 bits."""
    return msgspec.msgpack.encode([word for id_, data in records for word in (str(id_), data)])


@contextmanager
def appending_errors() -> Iterator[None]:
    """Say why Redis did not append."""
    try:
        yield
    except redis.ResponseError as error:
        # Redis 6.2 wraps the refusal in an error about the script; 7 says it plainly.
        if isinstance(error, redis.exceptions.OutOfMemoryError) or "OOM" in str(error):
            raise LogFull("Redis is out of memory and refuses to append") from None
        if "exhausted" in str(error):
            raise LogExhausted("the log ends with the greatest possible id") from None
        raise redis.ResponseError(f"Redis refuses to append to the log: {error}") from None
    except redis.RedisError as error:
        raise redis.ConnectionError(f"Redis: {error}") from None


@contextmanager
def naming_the_server() -> Iterator[None]:
    """Raise every error of Redis with a message that says whose it is."""
    try:
        yield
    except redis.ResponseError as error:
        refused = isinstance(error, redis.exceptions.NoPermissionError)
        if refused or any(sign in str(error) for sign in SIGNS_OF_REFUSAL):
            raise Forbidden(f"Redis: {error}") from None
        raise redis.ResponseError(f"Redis: {error}") from None
    except redis.RedisError as error:
        raise redis.ConnectionError(f"Redis: {error}") from None


def entries(reply: list[Any]) -> list[Entry]:
    """What a command such as XREAD or XRANGE answered about one stream."""
    return [Entry(redis_id.decode(), fields) for redis_id, fields in reply]


def as_numbers(redis_id: str) -> tuple[int, int]:
    """A stream id in a form that compares."""
    milliseconds, _, sequence = redis_id.partition("-")
    return int(milliseconds), int(sequence)
