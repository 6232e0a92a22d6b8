"""`DROP TABLE ... CASCADE` takes the view `log_records` along: who misses it says what to do."""

import pytest

from tests.support.listing import listing
from tests.support.looks import first_to_tell
from tests.support.world import Service, World, catch_up, eventually
from unified_log import database
from unified_log.errors import in_one_line

ADVICE = ": SELECT generate_log_records() makes it anew; then grant rights to it again"


@pytest.fixture
def dropped(world: World) -> World:
    world.send(1, 2)
    catch_up(world.consumer())
    world.connection.execute("DROP VIEW log_records CASCADE")
    return world


def test_a_command_says_what_makes_it_anew(dropped: World) -> None:
    for module in ("unified_log.repair", "watch.status"):
        status, said = first_to_tell(lambda: dropped.service(module))  # noqa: B023
        assert status != 0
        assert f'relation "log_records" does not exist{ADVICE}' in said


def test_a_streamer_says_so_until_it_is_there_again(dropped: World) -> None:
    """And then sends what was taken meanwhile."""
    streamer: Service = dropped.service("unified_log.streamer").says(ADVICE)
    [taken] = dropped.take(3)
    dropped.connection.execute("SELECT generate_log_records()")
    eventually(lambda: dropped.value("SELECT last_sent_id FROM streamer_state") == taken)
    assert "LINE" not in streamer.output.read_text()


def test_a_reader_says_so_where_it_has_to_heal(world: World) -> None:
    """One that reads on needs no view."""
    world.send(1)
    world.log().start_anew()
    reader = listing(world)
    world.connection.execute("DROP VIEW log_records CASCADE")
    with pytest.raises(database.NOT_IN_THE_SCHEMA) as error:
        reader.run_once()
    assert in_one_line(error.value).endswith(ADVICE)
    said = database.why(error.value, "take another schema")
    assert said.endswith(f"{ADVICE}; otherwise take another schema")
    world.connection.execute("SELECT generate_log_records()")
    reader = listing(world)
    eventually(lambda: reader.run_once() and world.value("SELECT count(*) FROM listed") == 1)


def test_a_table_that_took_the_view_along_is_of_no_kind_any_more(world: World) -> None:
    world.send(1)
    world.connection.execute("DROP TABLE rides CASCADE")
    world.connection.execute("SELECT generate_log_records()")
    assert world.value("SELECT count(*) FROM log_records") == 0


def test_another_table_that_is_missing_is_told_as_ever(world: World) -> None:
    for table in ("nowhere", "staged_log_records"):
        world.connection.execute(f"ALTER TABLE IF EXISTS {table} RENAME TO away")
        with pytest.raises(database.NOT_IN_THE_SCHEMA) as error:
            world.connection.execute(f"SELECT FROM {table}, log_records")
        assert ADVICE not in in_one_line(error.value) + database.why(error.value)
