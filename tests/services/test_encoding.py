"""Text is UTF-8 for every process, whatever the database or its clients' environment prefer."""

from collections.abc import Iterator

import psycopg
import pytest

from rocket_rides import database
from tests.support.api import Api
from tests.support.world import World, eventually

NAME = "käufer"


@pytest.fixture
def world_without_encoding(world: World) -> Iterator[World]:
    """A world whose database does not know how its text is encoded, and is empty."""
    plain, url = f"{world.stream}_ascii", world.postgres_url
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {plain} TEMPLATE template0 ENCODING 'SQL_ASCII'")
        world.postgres_url = url.replace(world.stream, plain)
        yield world
        world.close()
        admin.execute(f"DROP DATABASE {plain} WITH (FORCE)")


def works(world: World, **environment: str) -> None:
    """Migrate, take a ride, and count it."""
    migration = world.service("migrations", **environment)
    assert migration.process.wait(30) == 0, migration.output.read_text()
    api = Api(world, **environment)
    assert api.post("5").status_code == 201
    assert api.ready()
    world.service("streamer", **environment).says("leading")
    world.service("consumers", NAME, **environment).says("stands at")
    eventually(lambda: world.standing(NAME) == world.truth == (1, 5), "the ride in the total")
    [shown, _] = api.client.get("/consumers").json()["consumers"]
    assert (shown["name"], shown["total_distance"]) == (NAME, 5)
    api.client.close()


def test_a_database_that_knows_no_encoding_is_served(world_without_encoding: World) -> None:
    works(world_without_encoding)


def test_a_client_encoding_in_the_url_changes_nothing(world: World) -> None:
    works(world, DATABASE_URL=f"{world.postgres_url}&client_encoding=SQL_ASCII")


def test_a_client_encoding_in_the_environment_changes_nothing(world: World) -> None:
    works(world, PGCLIENTENCODING="SQL_ASCII")


def test_every_session_is_in_utf_8(world: World) -> None:
    with database.connect(f"{world.postgres_url}&client_encoding=LATIN1", "test") as connection:
        assert connection.execute("SHOW client_encoding").fetchone() == ("UTF8",)
