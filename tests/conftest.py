"""Private servers for each test process, and a fresh database and stream for each test."""

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from analytics.prerequisites import require_java
from analytics.session import session
from embedded.servers import Postgres, Redis
from embedded.stream_servers import STREAM_SERVERS
from migrations import upgrade
from rocket_rides.errors import Unavailable
from tests.api import Api
from tests.books import Books
from tests.clusters import world_of_its_own
from tests.world import World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_numbers = itertools.count()


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """A short-named folder: the servers' socket paths must stay under 107 bytes."""
    path = Path(tempfile.mkdtemp(prefix="rr-", dir="/tmp"))
    path.chmod(0o755)  # the embedded servers' user must get through
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres(folder: Path) -> Iterator[Postgres]:
    server = Postgres(
        data=folder / "data", sockets=folder / "run", settings={"max_prepared_transactions": "10"}
    )
    server.start()
    upgrade(server.url)
    yield server
    server.stop()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what is marked `stream_servers`, and uses one, on each of them."""
    if (
        metafunc.definition.get_closest_marker("stream_servers")
        and "stream_server" in metafunc.fixturenames
    ):
        metafunc.parametrize("stream_server", STREAM_SERVERS, indirect=True)


@pytest.fixture(scope="session")
def redis_of_kind(folder: Path) -> Iterator[Callable[[str], Redis]]:
    """The server of a kind, started when it is first asked for."""
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
def stream_server(request: pytest.FixtureRequest) -> str:
    """The kind of server that holds the log."""
    kind: str = getattr(request, "param", "valkey")
    return kind


@pytest.fixture
def redis(redis_of_kind: Callable[[str], Redis], stream_server: str) -> Redis:
    return redis_of_kind(stream_server)


@contextmanager
def fresh_world(postgres: Postgres, redis: Redis, folder: Path) -> Iterator[World]:
    """A migrated database and an empty log."""
    name = f"test_{next(_numbers)}"
    for server in (postgres, redis):
        if not server.running:  # a test that failed half-way
            server.start()
    with psycopg.connect(postgres.url, dbname="postgres", autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE rocket_rides")
    url = postgres.url.replace("/rocket_rides", f"/{name}")
    world = World(postgres, redis, url, name, folder)
    yield world
    log = world.log().redis
    log.delete(name)
    world.close()
    with psycopg.connect(postgres.url, dbname="postgres", autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def world(postgres: Postgres, redis: Redis, tmp_path: Path) -> Iterator[World]:
    with fresh_world(postgres, redis, tmp_path) as world:
        yield world


@pytest.fixture
def own_world(redis: Redis, tmp_path: Path) -> Iterator[World]:
    """A cluster for this test alone."""
    with world_of_its_own(redis, tmp_path) as world:
        yield world


@pytest.fixture(scope="module")
def module_world(
    postgres: Postgres,
    redis_of_kind: Callable[[str], Redis],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    """One world for a module whose tests leave no trace in it."""
    folder = tmp_path_factory.mktemp("module")
    with fresh_world(postgres, redis_of_kind("valkey"), folder) as world:
        yield world


@pytest.fixture(scope="session")
def java() -> Iterator[None]:
    """Skips what needs Spark where there is no Java for it, and says why."""
    try:
        require_java()
    except Unavailable as reason:
        pytest.skip(str(reason))
    with pytest.MonkeyPatch.context() as patch:
        # For programs that are over before the best compiler has warmed up.
        patch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        yield


@pytest.fixture(scope="session")
def spark(java: None) -> Iterator["SparkSession"]:
    """One Spark session for all tests."""
    with session() as spark:
        yield spark


@pytest.fixture
def books(world: World, spark: "SparkSession") -> Books:
    return Books(world, spark)


@pytest.fixture
def api(world: World) -> Iterator[Api]:
    api = Api(world)
    yield api
    api.client.close()
