"""Private servers for each test process, and a fresh database and stream for each test.

The packages that only these need are imported where they are used: the fast tests run without.
"""

import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.folders import short_folder
from tests.support.java import keep_classes, short_lived_java
from unified_log.errors import Unavailable

if TYPE_CHECKING:
    from pyspark import SparkContext

    from demo.embedded.servers import Postgres, Redis
    from tests.support.api import Api
    from tests.support.books import Books
    from tests.support.clock import Clock
    from tests.support.receipts import Staff
    from tests.support.receiver import Receiver
    from tests.support.recorded import Recorded
    from tests.support.secure import Secure
    from tests.support.world import World


def pytest_configure() -> None:
    from demo.embedded import stock
    from demo.embedded.failures import NeverStarts

    try:
        stock.require()
    except NeverStarts as reason:
        raise pytest.UsageError(str(reason)) from None


pytest_plugins = ["tests.support.distribution"]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays to the end: no collection of garbage looks at it.

    This takes a third off the time of collecting.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One folder for those of all that the tests run: who is killed does not delete them.

    This process has its own where it had them, since it deletes them after the tests.
    """
    tempfile.gettempdir()  # which it remembers
    path = tmp_path_factory.mktemp("temporary")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(path))
        for name, value in short_lived_java(path).items():
            patch.setenv(name, value)
        yield
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """Of the servers that all tests of this process share."""
    with short_folder() as path:
        yield path


@pytest.fixture(scope="session")
def prepared(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated cluster's data folder, to be copied."""
    from tests.support.prepared import SHARED_IN, prepared_cluster

    run = tmp_path_factory.getbasetemp()
    run = run.parent if "PYTEST_XDIST_WORKER" in os.environ else run
    return prepared_cluster(Path(os.environ.get(SHARED_IN, run)))


@pytest.fixture(scope="session")
def postgres(prepared: Path) -> Iterator["Postgres"]:
    from tests.support.clusters import migrated

    with migrated(prepared, {"max_prepared_transactions": "10"}) as server:
        yield server


@pytest.fixture(scope="session")
def redis_of_kind(folder: Path) -> Iterator[Callable[[str], "Redis"]]:
    """The server of a kind, started when it is first asked for."""
    from demo.embedded.servers import Redis
    from demo.embedded.stream_servers import STREAM_SERVERS

    servers: dict[str, Redis] = {}

    def started(kind: str) -> Redis:
        if kind not in servers:
            place = folder / kind
            place.mkdir(0o755)
            servers[kind] = Redis(place / "data", place / "run", kind=STREAM_SERVERS[kind])
            servers[kind].start()
        return servers[kind]

    yield started
    for server in servers.values():
        server.stop()


@pytest.fixture
def redis(redis_of_kind: Callable[[str], "Redis"], request: pytest.FixtureRequest) -> "Redis":
    """A Valkey, or the kind that a test's mark names."""
    return redis_of_kind(getattr(request, "param", "valkey"))


@pytest.fixture(scope="session")
def secure() -> Iterator["Secure"]:
    """Servers that take nobody without TLS and a password."""
    from tests.support.secure import secure_servers

    with secure_servers() as servers:
        yield servers


@pytest.fixture
def world(postgres: "Postgres", redis: "Redis", tmp_path: Path) -> Iterator["World"]:
    from tests.support.clusters import fresh_world

    with fresh_world(postgres, redis, tmp_path) as world:
        yield world


@pytest.fixture
def own_world(redis: "Redis", prepared: Path, tmp_path: Path) -> Iterator["World"]:
    """A cluster for this test alone."""
    from tests.support.clusters import migrated, world_on

    with (
        migrated(prepared) as server,
        world_on(server, redis, server.sockets.parent.name, tmp_path) as world,
    ):
        yield world


@pytest.fixture(scope="module")
def module_world(
    postgres: "Postgres",
    redis_of_kind: Callable[[str], "Redis"],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator["World"]:
    """One world for a module whose tests leave no trace in it."""
    from tests.support.clusters import fresh_world

    folder = tmp_path_factory.mktemp("module")
    with fresh_world(postgres, redis_of_kind("valkey"), folder) as world:
        yield world


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skips what needs Spark where there is no Java for it, and says why."""
    from analytics.prerequisites import require_java

    try:
        require_java()
    except Unavailable as reason:
        pytest.skip(str(reason))
    keep_classes(tmp_path_factory.mktemp("java"))


@pytest.fixture(scope="session")
def s3(folder: Path) -> Iterator[Path]:
    """A server of S3's protocol, which this environment names; where it keeps its buckets."""
    from tests.support.object_stores import SERVED, s3_server

    with s3_server(folder / "s3") as variables, pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        SERVED.append(folder / "s3")
        yield folder / "s3"


@pytest.fixture(scope="session")
def azure_port() -> Iterator[int]:
    """Where Azure's emulator will listen, as this environment says."""
    from lab.ports import free_ports
    from tests.support.object_stores import azure_variables

    port = free_ports()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in azure_variables(port).items():
            patch.setenv(name, value)
        yield port


@pytest.fixture(scope="session")
def azurite(folder: Path, azure_port: int) -> Iterator[int]:
    from tests.support.object_stores import azurite

    (folder / "azure").mkdir()
    with azurite(folder / "azure", azure_port):
        yield azure_port


@pytest.fixture(scope="session")
def spark(java: None, s3: Path, azure_port: int) -> Iterator["SparkContext"]:
    """One Spark session for all tests; its workers have the environment of its start."""
    from pyspark.logger import PySparkLogger

    from analytics.session import session
    from tests.support.forks import import_a_run

    import_a_run()
    # Else the loggers of its errors give their format, for good, to pytest's handler.
    with pytest.MonkeyPatch.context() as patch, session() as spark:
        patch.delattr(PySparkLogger, "addHandler")
        yield spark


@pytest.fixture
def books(world: "World", spark: "SparkContext") -> "Books":
    from tests.support.books import Books

    return Books(world, spark)


@pytest.fixture(scope="module")
def recordable(prepared: Path) -> Iterator["Postgres"]:
    """A server whose databases can be recorded."""
    from lab.chaos.postgres_pair import SETTINGS
    from tests.support.clusters import migrated

    with migrated(prepared, SETTINGS) as server:
        yield server


@pytest.fixture
def recorded(recordable: "Postgres", redis: "Redis", tmp_path: Path) -> Iterator["Recorded"]:
    from tests.support.clusters import fresh_world
    from tests.support.recorded import Recorded

    with fresh_world(recordable, redis, tmp_path) as world:
        yield Recorded(world)


@pytest.fixture
def api(world: "World") -> Iterator["Api"]:
    from tests.support.api import Api

    api = Api(world)
    yield api
    api.client.close()


@pytest.fixture
def receiver() -> Iterator["Receiver"]:
    """Who gets the receipts."""
    from tests.support.receiver import Receiver

    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def staff(world: "World", receiver: "Receiver") -> Iterator["Staff"]:
    """Who delivers them."""
    from tests.support.receipts import staff

    with staff(world, receiver) as found:
        yield found


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next attempt comes after milliseconds."""
    monkeypatch.setattr("consumers.receipts.queue.FIRST_DELAY", 0.01)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> "Clock":
    """The clock of every reader in this process."""
    from tests.support.clock import Clock

    clock = Clock()
    monkeypatch.setattr("unified_log.readers.reader.time", clock)
    monkeypatch.setattr("unified_log.readers.committing.time", clock)
    return clock
