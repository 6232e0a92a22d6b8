"""One implementation under one demand: the steps that a demand takes, and what comes of them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from enum import Enum
from itertools import count
from typing import Any, Self

import psycopg

from lab.chaos.backup import Backup
from tests.conformance.outbox import KINDS, Event, Outbox, nothing
from tests.conformance.servers import Servers
from tests.support.world import eventually

A_MINUTE = 60.0
# Where two steps wait for each other, the trial fails, and does not hang.
LIMIT = "-c lock_timeout=20s"
END = "SELECT pg_terminate_backend(%s)"
ENDED = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s)"


class Verdict(Enum):
    """The worst that an implementation did, worst first."""

    LOSES = "loses"  # a committed record never came
    INVENTS = "invents"  # one came that was not committed, or twice
    REORDERS = "reorders"  # one came after one with a higher position
    STANDS_STILL = "stands still"  # one came late, and no open transaction concerned it
    HOLDS = "holds"


class Watched(psycopg.Cursor[Any]):
    def execute(self, *arguments: Any, **options: Any) -> Self:
        assert isinstance(self.connection, Session)
        self.connection.before_statement()
        return super().execute(*arguments, **options)


class Session(psycopg.Connection[Any]):
    """A leader's; something may happen before each of its statements."""

    before_statement: Event = staticmethod(nothing)


class Trial:
    """An implementation on an empty database, with one leader and one consumer."""

    def __init__(self, kind: type[Outbox], servers: Servers, name: str) -> None:
        self.name = name
        self.keys = count(1)
        self.committed: list[tuple[int, int]] = []  # position, key
        self._kind, self._servers = kind, servers
        self._stood_still = False
        self._open()
        self.outbox.create()

    def _open(self) -> None:
        self._exits = ExitStack()
        kind, url = self._kind, self._servers.url(self.name)
        self.outbox = kind(url, self._servers.redis.url, self.name)
        self._exits.enter_context(closing(self.outbox))
        self.lead()
        self._another = Writer(self)

    def close(self) -> None:
        self._exits.close()

    def connect(self, database: str) -> psycopg.Connection:
        connection = psycopg.connect(self._servers.url(database), options=LIMIT)
        return self._exits.enter_context(closing(connection))

    def lead(self) -> None:
        """From now on another leader drains, on a session of its own."""
        url = self._servers.url(self.name)
        self.session = Session.connect(url, autocommit=True, options=LIMIT, cursor_factory=Watched)
        self._exits.enter_context(closing(self.session))
        self.leader = self.outbox.leader(self.session)

    def drain(self) -> None:
        self.leader.drain()
        self.outbox.read()

    def drain_amid(self, *steps: tuple[int, Event]) -> int:
        """Drain, and take each step before the statement of its number, or else afterwards.

        The numbers rise. Returns how many statements there were.
        """
        left, statements, session = [*steps], count(), self.session

        def before_statement() -> None:
            number = next(statements)
            while left and left[0][0] <= number:
                left.pop(0)[1]()

        session.before_statement = before_statement
        self.leader.drain()
        session.before_statement = nothing
        for _, step in left:
            step()
        return next(statements)

    def another_commits(self, kind: str = KINDS[0]) -> None:
        """A record is inserted and committed, by a transaction of its own."""
        self._another.add(kind)
        self._another.commit()

    def a_minute_passes(self) -> None:
        """The leader looks when it begins, and when it is over."""
        self.drain()
        self.outbox.pass_time(A_MINUTE)
        self.drain()

    def all_must_be_there(self) -> None:
        """No open transaction concerns what was committed."""
        self.leader.drain()
        self._stood_still |= bool(self._missing())

    def _missing(self) -> set[int]:
        return {key for _, key in self.committed} - set(self.outbox.read())

    def end_session(self) -> None:
        """The leader's, as the server does when a leader hangs."""
        pid = self.session.info.backend_pid
        with closing(psycopg.connect(self._servers.url(self.name), autocommit=True)) as admin:
            admin.execute(END, [pid])
            eventually(lambda: admin.execute(ENDED, [pid]).fetchone() == (True,))

    @contextmanager
    def lost(self) -> Iterator[None]:
        """What the block does in Postgres is lost by a restore. What it does in the log is not."""
        postgres, committed = self._servers.postgres, [*self.committed]
        backup = Backup(postgres, "earlier")
        try:
            yield
            self.close()
            postgres.kill()
            backup.restore(recovery_signal=False)
            postgres.start()
        finally:
            backup.remove()
        self.committed = committed
        self._open()

    def verdict(self) -> Verdict:
        """On all that was done."""
        self.all_must_be_there()
        self.a_minute_passes()
        given = self.outbox.read()
        if self._missing():
            return Verdict.LOSES
        if len(given) > len(self.committed):
            return Verdict.INVENTS
        if given != [key for _, key in sorted(self.committed)]:
            return Verdict.REORDERS
        return Verdict.STANDS_STILL if self._stood_still else Verdict.HOLDS


class Writer:
    """A transaction that draws positions and inserts records."""

    def __init__(self, trial: Trial) -> None:
        self.connection = trial.connect(trial.name)
        self._trial = trial
        self._drawn = 0
        self._inserted: list[tuple[int, int]] = []  # position, key

    def draw(self) -> None:
        self._drawn = self._trial.outbox.draw(self.connection)

    def insert(self, kind: str = KINDS[0]) -> None:
        """A record, at the position that was drawn last."""
        key = next(self._trial.keys)
        self._trial.outbox.insert(self.connection, self._drawn, key, kind)
        self._inserted.append((self._drawn, key))

    def add(self, kind: str = KINDS[0]) -> None:
        self.draw()
        self.insert(kind)

    @contextmanager
    def undone(self) -> Iterator[None]:
        """What the block does is rolled back to a savepoint. The number that it drew is kept."""
        before = len(self._inserted)
        self.connection.execute("SAVEPOINT before")
        yield
        self.connection.execute("ROLLBACK TO before")
        del self._inserted[before:]

    def commit(self) -> None:
        self.connection.commit()
        self.has_committed()

    def has_committed(self) -> None:
        self._trial.committed += self._inserted
        self._inserted = []


def tried(kind: type[Outbox], demand: Callable[[Trial], None], servers: Servers) -> Verdict:
    """The verdict on an implementation, under a demand."""
    name = f"{kind.__name__}_{demand.__name__}".lower()
    servers.administer(f"CREATE DATABASE {name} TEMPLATE template0")
    try:
        with closing(Trial(kind, servers, name)) as trial:
            demand(trial)
            return trial.verdict()
    finally:
        servers.administer(f"DROP DATABASE {name} WITH (FORCE)")
