"""The freeze: how far the rides are settled, every consumer, and whose they are, at one moment."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from analytics.freeze import STANDINGS, freeze
from analytics.ownership import history
from tests.support.world import World, catch_up, drain
from unified_log.errors import Unavailable


class InterruptedConnection(psycopg.Connection):
    """Does something else right before it asks where the consumers stand."""

    between: Callable[[], object] | None = None

    def execute(self, query: Any, *arguments: Any, **options: Any) -> Any:
        if query == STANDINGS and self.between:
            self.between()
        return super().execute(query, *arguments, **options)


def test_what_moves_meanwhile_is_not_seen_in_part(world: World) -> None:
    """Or a consumer would seem to be past every ride that was sent, and be reset."""
    streamer, consumer = world.streamer(), world.consumer()
    world.take(1, 2)
    drain(streamer)
    before = catch_up(consumer)

    def go_on() -> None:
        world.take(4)
        drain(streamer)
        assert catch_up(consumer) != before

    with InterruptedConnection.connect(world.postgres_url, autocommit=True) as connection:
        connection.between = go_on
        frozen = freeze(connection)
    [standing] = frozen.consumers
    assert frozen.position == standing.position
    assert (standing.position, standing.total_distance) == before


def test_an_emptied_state_is_one_line_and_no_bug(world: World) -> None:
    world.connection.execute("DELETE FROM streamer_state")
    with pytest.raises(Unavailable, match="streamer_state is empty"):
        freeze(world.connection)


def test_an_ordinary_role_can_tell_which_database_it_is_in(world: World) -> None:
    told = history(world.connection, 0)
    oid = world.value("SELECT oid FROM pg_database WHERE datname = current_database()")
    cluster = world.value("SELECT system_identifier FROM pg_control_system()")
    assert told.database_id == f"{cluster}-{oid}"
    role = f"plain_{world.stream}"
    plain = world.connect()
    world.connection.execute(f"CREATE ROLE {role}")
    world.connection.execute(f"GRANT SELECT ON terms TO {role}")
    plain.execute(f"SET ROLE {role}")
    try:
        assert history(plain, 0) == told
        world.connection.execute("REVOKE EXECUTE ON FUNCTION pg_control_system FROM PUBLIC")
        assert history(plain, 0) == told._replace(database_id="")
    finally:
        plain.close()
        world.connection.execute(f"DROP OWNED BY {role}")
        world.connection.execute(f"DROP ROLE {role}")
