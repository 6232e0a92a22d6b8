"""The freeze: how far the rides are settled, every consumer, and whose they are, at one moment."""

from contextlib import closing

import pytest

from analytics.freeze import STANDINGS, freeze
from analytics.ownership import history
from tests.support.interrupted import interrupted
from tests.support.roles import as_role
from tests.support.world import World, catch_up, drain
from unified_log.errors import Unavailable


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

    with interrupted(world, STANDINGS, go_on) as connection:
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
    rights = "GRANT SELECT ON terms TO {role}"
    with as_role(world, rights) as limited, closing(limited.connect()) as plain:
        assert history(plain, 0) == told
        world.connection.execute("REVOKE EXECUTE ON FUNCTION pg_control_system FROM PUBLIC")
        assert history(plain, 0) == told._replace(database_id="")
