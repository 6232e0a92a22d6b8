"""`unified_log`, as the suite asks for it."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import cached_property
from typing import ClassVar

import msgspec
import psycopg

from tests.conformance.outbox import KINDS, Event, nothing
from unified_log import database, locks, schema, session_settings
from unified_log.log import Data, Log, Packed, Record, parse_data
from unified_log.readers.handler import Handler
from unified_log.readers.reader import Reader
from unified_log.streamer.drain import Streamer
from unified_log.terms import Term

TABLE = """
    CREATE TABLE {kind} (
        id bigint PRIMARY KEY DEFAULT nextval('log_position'),
        created_at timestamptz NOT NULL DEFAULT now(),
        key bigint NOT NULL
    );
    SELECT attach('{kind}', 'id', '{kind}.create', $$jsonb_build_object('id', id, 'key', key)$$)
"""
TAKEN = "CREATE TABLE taken (n bigint GENERATED ALWAYS AS IDENTITY, key bigint NOT NULL)"
TAKE = "INSERT INTO taken (key) SELECT unnest(%s::bigint[])"
DRAW = "SELECT nextval('log_position')"
INSERT = """
    WITH inserted AS (INSERT INTO {kind} (id, key) VALUES (%s, %s) RETURNING id, key)
    SELECT stage(id, '{kind}.create', jsonb_build_object('id', id, 'key', key)) FROM inserted
"""


class Key(Data, frozen=True):
    key: int


def key(record: Record) -> int:
    return parse_data(record, msgspec.json.Decoder(Key).decode, "key").key


class Keys(Handler):
    """All keys, in the order in which they come."""

    KIND = "keys"
    TYPES: ClassVar = {f"{kind}.create": key for kind in KINDS}

    def take(self, records: Sequence[int]) -> None:
        self.connection.execute(TAKE, [[*records]])


class Hanging(Log):
    """A log at which its leader can be made to hang, before it appends."""

    before_send: Event = staticmethod(nothing)

    @contextmanager
    def appending(self, batch: Packed, prev: int, term: Term) -> Iterator[None]:
        self.before_send()
        with super().appending(batch, prev, term):
            yield


class Leading:
    """A leader, once it has the lock."""

    def __init__(self, connection: psycopg.Connection, log: Hanging) -> None:
        database.configure(connection, **session_settings.INDEX_SCANS)
        self._connection = connection
        self._log = log
        self._streamer: Streamer | None = None

    def drain(self, before_send: Event = nothing) -> None:
        if self._streamer is None:
            if not locks.try_lock(self._connection, locks.LEADER):
                return
            self._streamer = Streamer(self._connection, self._log)
        self._log.before_send = before_send
        while self._streamer.run_once():
            pass


class Unified:
    """Our outbox, its streamer and one reader."""

    def __init__(self, postgres_url: str, redis_url: str, name: str) -> None:
        self._exits = ExitStack()
        self._connection = database.connect(postgres_url, "keys")
        self._exits.enter_context(closing(self._connection))
        self._redis_url, self._stream = redis_url, name

    def create(self) -> None:
        with self._connection.transaction():
            schema.apply(self._connection)
            for kind in KINDS:
                self._connection.execute(TABLE.format(kind=kind).encode(), prepare=False)
            self._connection.execute(TAKEN)

    def draw(self, connection: psycopg.Connection) -> int:
        [(position,)] = connection.execute(DRAW)
        return int(position)

    def insert(self, connection: psycopg.Connection, position: int, key: int, kind: str) -> None:
        connection.execute(INSERT.format(kind=kind).encode(), [position, key])

    def leader(self, connection: psycopg.Connection) -> Leading:
        log = Hanging(self._redis_url, self._stream)
        self._exits.enter_context(log)
        return Leading(connection, log)

    def read(self) -> list[int]:
        while not self._reader.run_once().did_nothing:
            pass
        return [key for (key,) in self._connection.execute("SELECT key FROM taken ORDER BY n")]

    @cached_property
    def _reader(self) -> Reader[Keys]:
        log = self._exits.enter_context(Log(self._redis_url, self._stream))
        return Reader(log, Keys(self._connection, "main"))

    def pass_time(self, seconds: float) -> None:
        """It looks at no clock."""

    def close(self) -> None:
        self._exits.close()
