"""The embedded servers: what they keep, and what they leave behind, however they end."""

import importlib.util
import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from demo.embedded.account import server_account
from demo.embedded.failures import NeverStarts
from demo.embedded.servers import Postgres, Redis
from tests.support.folders import short_folder
from tests.support.prepared import put_into
from unified_log.database import one_row

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers as somebody else")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder for one fleet."""
    with short_folder() as path:
        yield path


@pytest.fixture
def postgres(place: Path) -> Iterator[Postgres]:
    server = Postgres(data=place / "data", sockets=place / "run")
    yield server
    server.stop()


@pytest.fixture
def redis_server(place: Path) -> Iterator[Redis]:
    server = Redis(place / "data", place / "run")
    yield server
    server.stop()


def query(url: str, statement: str) -> str:
    """The first value of the first row, as text."""
    with psycopg.connect(url, autocommit=True) as connection:
        [value] = one_row(connection.execute(statement))
        return str(value)


def test_both_are_durable_and_listen_on_sockets_alone(
    postgres: Postgres, redis_server: Redis, place: Path
) -> None:
    """And a data folder that was never finished is made again."""
    unfinished = postgres.home / "postgres.new"
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("18\n")
    postgres.start()
    redis_server.start()
    assert not unfinished.exists()
    settings = {
        "fsync": "on",
        "synchronous_commit": "on",
        "listen_addresses": "",
        "autovacuum": "on",
    }
    assert {name: query(postgres.url, f"SHOW {name}") for name in settings} == settings
    wanted = {
        "appendonly": "yes",
        "appendfsync": "always",
        "maxmemory-policy": "noeviction",
        "save": "",
        "port": "0",
    }
    with redis.Redis.from_url(redis_server.url, decode_responses=True) as client:
        assert {name: client.config_get(name)[name] for name in wanted} == wanted
    sockets = (place / "run").stat()
    assert stat.S_IMODE(sockets.st_mode) == 0o700
    assert sockets.st_uid == server_account().uid


@pytest.mark.parametrize("kind", [Postgres, Redis])
def test_a_start_ends_a_server_that_outlived_its_parent(
    kind: type[Postgres] | type[Redis], place: Path, prepared: Path
) -> None:
    put_into(place / "data", prepared)
    orphan, server = (kind(place / "data", place / "run") for _ in range(2))
    try:
        orphan.start()
        server.start()
        assert orphan.process.wait(0) == -signal.SIGKILL
        assert server.running
    finally:
        server.stop()
        orphan.stop()


def test_a_start_is_not_misled_by_another_process_with_the_number_of_the_dead_postmaster(
    postgres: Postgres, prepared: Path
) -> None:
    put_into(postgres.data, prepared)
    postgres.start()
    postgres.kill()
    account = server_account()
    user = account.uid if account.is_other else None
    with subprocess.Popen(["/bin/sleep", "1000"], user=user) as innocent:
        try:
            for name in (
                postgres.folder / "postmaster.pid",
                postgres.sockets / ".s.PGSQL.5432.lock",
            ):
                _number, _, rest = name.read_text().partition("\n")
                name.write_text(f"{innocent.pid}\n{rest}")
            postgres.start()
            assert query(postgres.url, "SELECT 1") == "1"
            assert innocent.poll() is None
        finally:
            innocent.kill()


@pytest.mark.parametrize(
    ("kind", "whose"), [(Postgres, "its data is in"), (Redis, "process [0-9]+, not [0-9]+")]
)
def test_a_server_that_answers_in_place_of_ours_is_found_out_and_not_touched(
    kind: type[Postgres] | type[Redis],
    whose: str,
    place: Path,
    prepared: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for data in (place / "theirs", place / "data"):
        put_into(data, prepared)
    theirs, ours = kind(place / "theirs", place / "their run"), kind(place / "data", place / "run")
    try:
        theirs.start()
        if isinstance(theirs, Postgres):
            with psycopg.connect(theirs.url, dbname="postgres", autocommit=True) as operator:
                operator.execute("DROP DATABASE rocket_rides")
        monkeypatch.setattr(kind, "url", theirs.url)
        with pytest.raises(NeverStarts, match=f"another {kind.name} answers on .*{whose}"):
            ours.start()
        if isinstance(theirs, Postgres):
            with psycopg.connect(theirs.url, dbname="postgres") as operator:
                known = operator.execute("SELECT datname FROM pg_database ORDER BY 1").fetchall()
            assert known == [("postgres",), ("template0",), ("template1",)]
    finally:
        ours.stop()
        theirs.stop()


def test_a_folder_for_sockets_that_somebody_else_prepared_is_refused(
    redis_server: Redis, place: Path
) -> None:
    (place / "theirs").mkdir()
    (place / "run").symlink_to("theirs")
    with pytest.raises(NeverStarts, match="is not a plain folder; remove it first"):
        redis_server.start()
    if os.geteuid() == 0:
        (place / "run").unlink()
        (place / "run").mkdir()
        os.chown(place / "run", 12345, 12345)
        with pytest.raises(NeverStarts, match="belongs to another user, 12345"):
            redis_server.start()


@as_root
def test_below_a_private_folder_root_puts_the_data_elsewhere_and_opens_nothing(
    place: Path,
) -> None:
    private = place / "private"
    private.mkdir(0o700)
    modes = [path.stat().st_mode for path in (private, *private.parents)]
    servers = [kind(private / "data", place / "run") for kind in (Postgres, Redis)]
    elsewhere = servers[0].home
    try:
        assert elsewhere.parent == Path("/var/lib")
        for server in servers:
            server.start()
            assert server.folder.is_relative_to(elsewhere)
        assert [path.stat().st_mode for path in (private, *private.parents)] == modes
        # Where the data is must not change when the permissions do.
        private.chmod(0o755)
        assert Redis(private / "data", place / "run").home == elsewhere
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(elsewhere)


@as_root
def test_programs_that_the_servers_user_cannot_reach_are_copied(
    postgres: Postgres, place: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_into(postgres.data, prepared)
    private = place / "private"
    private.mkdir(0o700)
    package = postgres.distribution.replace("-", "_")
    installed = importlib.util.find_spec(package)
    assert installed is not None
    for folder in Path(str(installed.origin)).parents[1].glob(f"{package}*"):
        shutil.copytree(folder, private / folder.name)
    monkeypatch.syspath_prepend(str(private))
    assert postgres.programs.is_relative_to(place / "data")
    postgres.start()
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
