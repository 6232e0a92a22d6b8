"""PgBouncer between a fleet and its Postgres: in session mode all works; else all refuse."""

import shutil
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import psycopg
import pytest

from demo.embedded.account import server_account
from demo.embedded.spawn import spawn
from tests.support.everybody import at_work, is_reconciled
from tests.support.folders import short_folder
from tests.support.looks import probed
from tests.support.receipts import SECRET, Staff
from tests.support.world import World, eventually
from unified_log import database, deadline
from unified_log.database import POOLED
from unified_log.errors import Refused

if TYPE_CHECKING:
    from pyspark import SparkContext

PROGRAM = shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
CONFIGURATION = """
[databases]
* = host={sockets} user=postgres
[pgbouncer]
pool_mode = {mode}
auth_type = any
unix_socket_dir = {folder}
listen_port = 6432
default_pool_size = {size}
"""

pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="needs PgBouncer (Debian: apt install pgbouncer)"
)


def listens(path: Path) -> bool:
    """Whether somebody takes connections there; a socket exists before anybody does."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


@contextmanager
def pgbouncer(world: World, mode: str, size: int = 50) -> Iterator[None]:
    """The world's sessions lead through a PgBouncer, which listens on a Unix socket alone."""
    account = server_account()
    with short_folder() as folder:
        account.make_private(folder)
        configuration = folder / "pgbouncer.ini"
        configuration.write_text(
            CONFIGURATION.format(
                sockets=world.postgres.sockets, folder=folder, mode=mode, size=size
            )
        )
        configuration.chmod(0o644)
        command = [str(PROGRAM), str(configuration)]
        process = spawn(command, account, folder / "log", signal.SIGKILL, session=True)
        eventually(lambda: listens(folder / ".s.PGSQL.6432"), "PgBouncer's socket")
        world.postgres_url = f"postgresql://postgres@/{world.stream}?host={folder}&port=6432"
        try:
            yield
        finally:
            process.kill()
            process.wait()


def test_in_session_mode_everything_works(
    world: World, staff: Staff, spark: "SparkContext"
) -> None:
    with pgbouncer(world, "session"):
        at_work(world, staff)
        assert is_reconciled(world, staff, spark)


def test_behind_a_full_pool_a_long_statement_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks what it is doing comes as far as the pooler."""
    monkeypatch.setattr(deadline, "EVERY", 0.1)
    monkeypatch.setattr(deadline, "ANSWER", 0.5)
    with pgbouncer(world, "session", size=3), ExitStack() as others:
        session = world.connect()
        for _ in range(2):
            others.enter_context(psycopg.connect(world.postgres_url)).execute("SELECT")
        assert session.execute("SELECT 7 FROM pg_sleep(3)").fetchone() == (7,)


def test_in_statement_mode_a_session_is_refused(world: World) -> None:
    with pgbouncer(world, "statement"), pytest.raises(Refused, match="set the pooler to session"):
        database.connect(world.postgres_url, "test")


def test_in_transaction_mode_no_session_is_taken_for_one_of_our_own_however_busy_the_pool_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "ARRIVES", 0.5)
    ended = Event()

    def work() -> None:
        with psycopg.connect(world.postgres_url, autocommit=True) as connection:
            while not ended.is_set():
                connection.execute("SELECT", prepare=False)

    with pgbouncer(world, "transaction"), ThreadPoolExecutor() as others:
        working = [others.submit(work) for _ in range(4)]
        try:
            for _ in range(8):
                with pytest.raises(Refused):
                    database.connect(world.postgres_url, "test")
        finally:
            ended.set()
        for each in working:
            each.result()


def test_in_transaction_mode_every_process_refuses_in_one_sentence(world: World) -> None:
    with pgbouncer(world, "transaction"):
        receiver = {"RECEIPT_URL": "http://127.0.0.1:1/receipts", "RECEIPT_SECRET": SECRET}
        processes = [
            world.service("migrations"),
            world.service("api", API_PORT="65000"),
            world.service("streamer"),
            world.service("consumers.totals", "consumer0"),
            world.service("consumers.rollup"),
            world.service("consumers.receipts", "one", **receiver),
            world.service("analytics.reconcile"),
            world.service("rocket_rides.health", "streamer"),
        ]
        for each in processes:
            assert each.ends() != 0
            said = each.output.read_text()
            assert (said.count(POOLED), len(said.splitlines())) == (1, 1), said
        status, told = probed(world)
        assert status == 2
        assert f"NOT WELL: Postgres can't be used: {POOLED}" in told
