"""A session with a Postgres that is frozen, or only takes long: what is cut, and what is not."""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import psycopg
import pytest

from lab.chaos.postgres_pair import PostgresPair, connect
from tests.support.clusters import postgres_pair
from tests.support.disasters import stopped
from tests.support.roles import as_role
from tests.support.world import World, eventually
from unified_log import database, deadline
from unified_log.deadline import NoAnswer, Session

LIMIT = "200ms"
# Seconds that a cut may take, on a busy machine: a session that is not cut waits for ever.
LONGEST = 30.0
WITHOUT_AN_ANSWER = 5.0  # seconds: the connect_timeout of database.connect
LARGE = "x" * 1_000_000
WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


def query(session: Session) -> None:
    session.execute("SELECT 1")


def commit(session: Session) -> None:
    session.commit()


def pipeline(session: Session) -> None:
    with session.pipeline():
        session.execute("SELECT 1")
        session.execute("SELECT 2").fetchone()


def copy_in(session: Session) -> None:
    with session.cursor().copy("COPY large FROM STDIN") as copying:
        for _ in range(100):
            copying.write(LARGE)


def copy_out(session: Session) -> None:
    with session.cursor().copy("COPY (SELECT 1) TO STDOUT") as copying:
        copying.read()


def listen(session: Session) -> None:
    next(session.notifies())


WAITS: list[Callable[[Session], None]] = [query, commit, pipeline, copy_in, copy_out, listen]


@pytest.fixture(scope="module")
def pair(prepared: Path) -> Iterator[PostgresPair]:
    with postgres_pair(prepared) as pair:
        yield pair


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session without a limit asks ten times a second; limits are kept almost to the moment."""
    monkeypatch.setattr(deadline, "EVERY", 0.1)
    monkeypatch.setattr(deadline, "MARGIN", 0.1)


def test_a_commit_waits_for_its_standby_beyond_its_deadline(
    pair: PostgresPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "MARGIN", 0.05)
    with (
        database.connect(pair.primary.url, "test", statement_timeout="700ms") as session,
        connect(pair.primary) as onlooker,
        ThreadPoolExecutor(1) as threads,
    ):
        onlooker.execute("CREATE TABLE kept (one int)")
        pair.wait_for_standby()
        pair.cut_off()
        committing = threads.submit(session.execute, "INSERT INTO kept VALUES (1)")
        try:
            eventually(lambda: onlooker.execute(WAITING).fetchone())
            with pytest.raises(TimeoutError):
                committing.result(2.5)  # three times its deadline
            assert onlooker.execute(WAITING).fetchone() == (session.info.backend_pid,)
        finally:
            pair.link.server = pair.primary.socket
        assert committing.result(LONGEST).rowcount == 1


@pytest.mark.proves("deadlines")
def test_nothing_waits_for_a_server_that_is_frozen(pair: PostgresPair) -> None:
    """The postmaster and all of its processes: the kernel goes on taking connections and data.

    This ends the pair.
    """
    url = pair.primary.url
    with connect(pair.primary) as primary:
        primary.execute("CREATE TABLE large (content text)")
    frozen = Barrier(len(WAITS) + 2, timeout=LONGEST)

    def cut(wait: Callable[[Session], None]) -> bool:
        session = database.connect(url, "test")
        if wait is commit:
            session.autocommit = False
            session.execute("INSERT INTO large VALUES ('x')")
        database.configure(session, statement_timeout=LIMIT)
        frozen.wait()
        frozen.wait()
        began = time.monotonic()
        with pytest.raises(NoAnswer, match=r"^Postgres does not answer: .*timeout expired$"):
            wait(session)
        assert session.closed
        return time.monotonic() - began < LONGEST

    async def cut_too() -> bool:
        session = await database.connect_async(url, "test", statement_timeout=LIMIT)
        frozen.wait()
        frozen.wait()
        longest_pause = 0.0

        async def go_on() -> None:
            nonlocal longest_pause
            while True:
                began = time.monotonic()
                await asyncio.sleep(0.01)
                longest_pause = max(longest_pause, time.monotonic() - began)

        going_on = asyncio.create_task(go_on())
        with pytest.raises(NoAnswer):
            await session.execute("SELECT 1")
        await asyncio.sleep(0.1)  # so that it can tell
        going_on.cancel()
        return session.closed and longest_pause < WITHOUT_AN_ANSWER

    with ThreadPoolExecutor(len(WAITS) + 1) as threads:
        waiting = [threads.submit(cut, wait) for wait in WAITS]
        waiting.append(threads.submit(asyncio.run, cut_too()))
        frozen.wait()
        pair.primary.freeze()
        frozen.wait()
        try:
            assert all(each.result(LONGEST) for each in waiting)
        finally:
            pair.primary.crash(0, for_good=True)


def test_a_statement_without_a_limit_goes_on_while_the_server_answers(
    world: World, impatient: None
) -> None:
    session = world.connect()
    assert session.execute("SELECT 7 FROM pg_sleep(0.5)").fetchone() == (7,)
    with session.pipeline():
        first = session.execute("SELECT 1 FROM pg_sleep(0.3)")
        second = session.execute("SELECT 2 FROM pg_sleep(0.3)")
        assert [first.fetchone(), second.fetchone()] == [(1,), (2,)]


def test_a_full_server_is_there(world: World, impatient: None) -> None:
    """It refuses the session that asks."""
    with (
        as_role(world, options="CONNECTION LIMIT 1") as one,
        database.connect(one.postgres_url, "test") as session,
    ):
        assert session.execute("SELECT 7 FROM pg_sleep(0.5)").fetchone() == (7,)


def test_who_waits_for_notifications_is_not_cut(world: World, impatient: None) -> None:
    """With a limit for statements, and with a time-out of its own or none."""
    session = world.connect()
    session.execute("LISTEN news")  # on a busy machine, it takes longer than the limit
    database.configure(session, statement_timeout="10ms")
    assert not [*session.notifies(timeout=0.5)]
    with ThreadPoolExecutor(1) as threads:
        hearing = threads.submit(lambda: next(session.notifies()).payload)
        with pytest.raises(TimeoutError):
            hearing.result(0.5)
        world.connection.execute("NOTIFY news, 'heard'")
        assert hearing.result(LONGEST) == "heard"


def test_what_is_being_sent_goes_on_after_a_deadline(world: World, impatient: None) -> None:
    """More than the kernel takes, to a process that does not read for a while."""
    session = world.connect()
    with ThreadPoolExecutor(1) as threads, stopped(session.info.backend_pid):
        sending = threads.submit(session.execute, "SELECT length(%s)", [LARGE * 10])
        with pytest.raises(TimeoutError):
            sending.result(0.5)
    assert sending.result(LONGEST).fetchone() == (10_000_000,)


def test_a_process_that_hangs_past_the_limit_is_cut_though_the_server_answers(world: World) -> None:
    session = opened(world)
    assert session.backend
    # As if the process hung before it ended the statement: it knows no limit.
    session.backend = session.backend._replace(limit=deadline.seconds(LIMIT))
    pid = session.info.backend_pid
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(session.execute, "SELECT 1 FROM pg_sleep(%s)", [2 * LONGEST])
        try:
            with pytest.raises(NoAnswer, match=r"not ended a statement after its limit of 0\.2 s"):
                asking.result(LONGEST)
        finally:
            world.connection.execute("SELECT pg_terminate_backend(%s)", [pid])
    assert session.closed


def test_who_has_not_read_what_was_sent_is_waited_for(world: World, impatient: None) -> None:
    """It has begun no statement, so none is past its limit."""
    session = world.connect(statement_timeout="300ms")
    with ThreadPoolExecutor(1) as threads, stopped(session.info.backend_pid):
        asking = threads.submit(session.execute, "SELECT 7")
        with pytest.raises(TimeoutError):
            asking.result(1)
    assert asking.result(LONGEST).fetchone() == (7,)


def test_another_servers_process_of_the_same_number_is_not_taken_for_this_one(
    world: World, impatient: None
) -> None:
    """As where a proxy leads to a server that took over."""
    session = opened(world)
    assert session.backend
    session.backend = session.backend._replace(started=0)
    with pytest.raises(NoAnswer, match="does not know this session"):
        session.execute("SELECT 1 FROM pg_sleep(5)")


def test_a_session_is_known_whatever_the_defaults_of_its_database(
    world: World, impatient: None
) -> None:
    """Who asks has them, and the session its own settings: so no number may depend on them."""
    alter = f"ALTER DATABASE {world.stream}"
    world.connection.execute(f"{alter} SET extra_float_digits = -9".encode())
    try:
        assert opened(world).execute("SELECT 7 FROM pg_sleep(0.5)").fetchone() == (7,)
    finally:
        world.connection.execute(f"{alter} RESET extra_float_digits".encode())


def test_an_answer_that_came_while_the_server_was_asked_is_taken(
    world: World, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where this process was frozen, and found no answer to its question in time."""
    session = world.connect()

    def late(_: Session) -> str:
        time.sleep(1)
        return "Postgres does not answer"

    monkeypatch.setattr(deadline, "_why_none", late)
    assert session.execute("SELECT 7 FROM pg_sleep(0.5)").fetchone() == (7,)


def test_a_limit_is_read_as_postgres_reads_it(world: World) -> None:
    for limit in ("0", "900ms", "10s", "2.5s", "2min", "1500", "1 h", "1d"):
        session = opened(world, statement_timeout=limit)
        [(kept,)] = session.execute(
            "SELECT setting::float8 / 1000 FROM pg_settings WHERE name = 'statement_timeout'"
        )
        assert deadline.seconds(limit) == kept
        assert session.backend == as_it_is(session, kept)


def opened(world: World, **settings: str) -> Session:
    return world.exits.enter_context(
        closing(database.connect(world.postgres_url, "test", **settings))
    )


def as_it_is(session: psycopg.Connection, limit: float) -> deadline.Backend:
    [(started,)] = session.execute(
        "SELECT (extract(epoch FROM backend_start) * 1000000)::bigint"
        " FROM pg_stat_activity WHERE pid = %s",
        [session.info.backend_pid],
    )
    return deadline.Backend(session.info.backend_pid, started, limit)
