"""The stream that holds the log: appending, reading and trimming."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, cast

import msgspec
import redis

from unified_log import sentinel_urls
from unified_log.log import names, sentinels
from unified_log.log.entries import START, Entry, entries
from unified_log.log.errors import appending_errors, naming_the_server
from unified_log.log.replies import BoundedParser
from unified_log.terms import Term
from unified_log.tracing import parse

ID, TYPE, DATA, PREV, TERM = (
    field.decode() for field in (names.ID, names.TYPE, names.DATA, names.PREV, names.TERM)
)
# A script runs without interruption, and Redis refuses it before it starts when memory is full: so
# the log gets the whole batch or nothing. Only where the stream runs out of ids can it fail
# half-way, and that is not undone. The records come packed, as one argument: thousands of arguments
# would take the server a quarter longer. The traces of the few records that have one come packed,
# too, as further fields and values.
APPEND = f"""
local key, term, prev, call = KEYS[1], ARGV[1], ARGV[2], redis.call
local records, traces = cmsgpack.unpack(ARGV[3]), cmsgpack.unpack(ARGV[4])
for i = 1, #records, 3 do
  local id, kind, data = records[i], records[i + 1], records[i + 2]
  local trace = traces[id]
  if trace then
    call('XADD', key, '*', '{ID}', id, '{TYPE}', kind, '{DATA}', data, '{PREV}', prev,
         '{TERM}', term, unpack(trace))
  else
    call('XADD', key, '*', '{ID}', id, '{TYPE}', kind, '{DATA}', data, '{PREV}', prev,
         '{TERM}', term)
  end
  prev = id
end
"""


class Staged(NamedTuple):
    """A record of the outbox; `data` is JSON. A plain row of these five will do."""

    position: int
    type: str
    data: str
    traceparent: str | None = None
    tracestate: str | None = None


class Packed(NamedTuple):
    """Records, and their traces, as APPEND takes them."""

    records: bytes
    traces: bytes


SOCKET_TIMEOUT = 5.0
MOST_TRIMMED = 200_000  # entries at once: meanwhile, some 0.1 s, Redis answers nobody
REPLICAS_TIMEOUT = 0.5  # seconds; a leader that waits holds a transaction open in Postgres


class Log:
    """The stream `name` on one Redis connection. Every method raises redis.RedisError.

    No answer takes longer than `timeout` seconds. An append succeeds only once `replicas` replicas
    have it in memory.
    """

    def __init__(
        self, url: str, name: str, timeout: float = SOCKET_TIMEOUT, replicas: int = 0
    ) -> None:
        def parser(socket_read_size: int) -> BoundedParser:
            self._parser = BoundedParser(socket_read_size)  # type: ignore[no-untyped-call]
            return self._parser

        # The processes retry whole batches; a command retried underneath them might be carried
        # out twice. RESP2, so that entries arrive as flat lists.
        options: dict[str, Any] = {"protocol": 2, "parser_class": parser, "retry": None}
        with naming_the_server():
            if asked := sentinel_urls.parse(url):
                self.redis = sentinels.client(asked, timeout, **options)
            else:
                self.redis = redis.Redis.from_url(
                    url,
                    **options,
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

    def append(self, records: Sequence[Staged], prev: int, term: Term) -> None:
        """Append staged records in one step, the first one chained to `prev`.

        Raises LogFull when Redis is out of memory: then nothing was appended. Raises LogExhausted
        when the stream has no id left: then some of the records may have been. Raises
        redis.ConnectionError when too few replicas have them: this server may have them all.
        """
        with self.appending(packed(records), prev, term):
            pass

    @contextmanager
    def appending(self, batch: Packed, prev: int, term: Term) -> Iterator[None]:
        """Append `packed` records as `append` does, while the block does something else.

        redis-py can't send now and read later, so this uses its connection directly. Without the
        overlap, a drain in batches of 2,000 is a ninth slower.

        Whatever happens in the block, its end waits for Redis' answer. An exception in the block
        takes precedence over Redis' error.
        """
        values: list[str | int | bytes] = [term.name, prev, *batch]
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

        Raises redis.ConnectionError when too few have it, or too few are connected.
        """
        if self._replicas:
            milliseconds = int(REPLICAS_TIMEOUT * 1000)
            having: int = self.command("WAIT", self._replicas, milliseconds)
            if having < self._replicas:
                raise redis.ConnectionError(
                    f"Redis: {having} of {self._replicas} replicas have the log"
                    f" after {REPLICAS_TIMEOUT:g} s (LOG_REPLICAS)"
                )

    def require_primary(self) -> None:
        """For who sees nothing new: raise redis.ConnectionError if another server has taken over.

        Only Sentinels can tell; without any, this does nothing.
        """
        if isinstance(self.redis.connection_pool, sentinels.Pool):
            with naming_the_server():
                self.redis.connection_pool.require_primary()

    @property
    def was_cut(self) -> bool:
        """Whether the last reply was too large to be kept whole (`replies.py`)."""
        return self._parser.was_cut

    def start_anew(self) -> None:
        """Delete the stream. Readers notice, and heal what they had not read."""
        self.command("UNLINK", self.name)

    def read(self, after: str, count: int, wait: float = 0) -> list[Entry]:
        """Up to `count` entries after the id `after`; waits up to `wait` seconds for the first."""
        blocking = ["BLOCK", max(1, int(wait * 1000))] if wait else []
        reply = self.command("XREAD", "COUNT", count, *blocking, "STREAMS", self.name, after)
        return entries(reply[0][1]) if reply else []

    def between(
        self, first: str, last: str, count: int, *, newest_first: bool = False
    ) -> list[Entry]:
        """Up to `count` of the entries from the id `first` to `last`, both included."""
        if newest_first:
            reply = self.command("XREVRANGE", self.name, last, first, "COUNT", count)
        else:
            reply = self.command("XRANGE", self.name, first, last, "COUNT", count)
        return entries(reply)

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

    def info(self, section: str) -> dict[str, str]:
        """What INFO tells in a section."""
        reply: bytes = self.command("INFO", section)
        return dict(line.split(":", 1) for line in reply.decode().splitlines() if ":" in line)

    def length(self) -> int:
        """How many entries the stream holds."""
        return int(self.command("XLEN", self.name))

    def clock(self) -> int:
        """Redis' time, in milliseconds: as in the ids of the entries that it appends."""
        seconds, microseconds = self.command("TIME")
        return int(seconds) * 1000 + int(microseconds) // 1000

    def trim_before(self, redis_id: str, *, exactly: bool = False) -> int:
        """Drop entries with smaller ids, only whole nodes unless `exactly`; returns how many."""
        return self._trim("MINID", redis_id, exactly)

    def trim_to(self, length: int, *, exactly: bool = False) -> int:
        """Drop all but the newest `length`, or some fewer unless `exactly`; returns how many."""
        return self._trim("MAXLEN", length, exactly)

    def command(self, *words: object) -> Any:
        """Send a command. Raises redis.RedisError, with a message that begins with "Redis"."""
        with naming_the_server():
            return self.redis.execute_command(*words)  # type: ignore[no-untyped-call]

    def run(self, script: str, *values: object) -> Any:
        """Run a script in Lua on the stream, in one atomic step. Raises as `command` does."""
        with naming_the_server():
            return self.redis.register_script(script)(keys=[self.name], args=values)  # type: ignore[arg-type]

    def _trim(self, strategy: str, threshold: str | int, exactly: bool) -> int:
        # Without a LIMIT, Redis drops only some 10,000 entries at once where it may leave some.
        how = ["=", threshold] if exactly else ["~", threshold, "LIMIT", MOST_TRIMMED]
        return int(self.command("XTRIM", self.name, strategy, *how))


def packed(records: Sequence[Staged]) -> Packed:
    """Records to be appended. Ids are text: Lua's numbers have only 53 bits.

    A malformed trace, or a malformed or overlong state, is left out: others would send it on.
    """
    words = [word for id_, type_, data, _, _ in records for word in (str(id_), type_, data)]
    traces = {
        str(id_): [word for field in trace.headers().items() for word in field]
        for id_, _, _, parent, state in records
        if parent and (trace := parse(parent, state))
    }
    return Packed(msgspec.msgpack.encode(words), msgspec.msgpack.encode(traces))
