"""Row-level security: what a policy hides from a role is never taken for rides that are gone."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError

from api import booking, feed
from api.feed import Asked
from api.readiness import require_readiness
from consumers.ratings.stars import Stars
from consumers.receipts.statements import SWEEP
from consumers.rollup.dirty import Mark
from tests.support.desk import Desk
from tests.support.disasters import flush
from tests.support.engine import connected, opened
from tests.support.resets import ask
from tests.support.roles import as_role
from tests.support.rollup import hurry, lead, work
from tests.support.world import World, catch_up, eventually
from unified_log.readers.reader import Reader

RIGHTS = """
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role};
    GRANT SELECT, USAGE ON ALL SEQUENCES IN SCHEMA public TO {role};
    GRANT EXECUTE ON FUNCTION stage TO {role}
"""
SAID = 'query would be affected by row-level security policy for table "{}"'
RECOUNT = "UPDATE checkpoints SET recount = true"
DERIVED = """
    SELECT ARRAY(SELECT consumer_states::text FROM consumer_states),
           ARRAY(SELECT rating_sums::text FROM rating_sums),
           ARRAY(SELECT ride_minutes::text FROM ride_minutes ORDER BY minute),
           ARRAY(SELECT receipts_state::text FROM receipts_state),
           ARRAY(SELECT (kind, name, position)::text FROM checkpoints ORDER BY kind)
"""


@pytest.fixture
def limited(world: World, request: pytest.FixtureRequest) -> Iterator[World]:
    """The same world, as a role sees it that owns nothing; by default, a policy filters."""
    rights = f"{RIGHTS}; ALTER ROLE {{role}} SET row_security = {getattr(request, 'param', 'on')}"
    with as_role(world, rights) as limited:
        yield limited


def hide(world: World, table: str, shown: str = "id % 3 = 0") -> None:
    """Hide rows, by default two of three, from all roles but the table's owner."""
    world.connection.execute(f"CREATE POLICY few ON {table} USING ({shown})")
    world.connection.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")


def show(world: World, table: str) -> None:
    world.connection.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")


def test_a_gap_is_not_healed_with_the_rides_that_a_policy_leaves(
    world: World, limited: World
) -> None:
    """The consumer says why in a sentence, waits, and goes on by itself."""
    world.send(1, 2, 3)
    catch_up(limited.consumer())
    world.send(10, 20, 40)
    flush(world)
    hide(world, "rides")
    consumer = limited.service("consumers.totals", "consumer0")
    consumer.says(f"WARNING {SAID.format('rides')}; trying again until it works")
    assert world.standing() == (world.start + 3, Decimal(6))
    show(world, "rides")
    eventually(lambda: world.standing() == world.truth)
    assert world.truth[1] == 76
    assert "Traceback" not in consumer.output.read_text()


def reset(world: World, limited: World) -> Callable[[], object]:
    consumer = limited.consumer()
    catch_up(consumer)
    ask(world, upto=2)
    return consumer.run_once


def recount(world: World, limited: World) -> Callable[[], object]:
    consumer = limited.consumer()
    catch_up(consumer)
    world.connection.execute(RECOUNT)
    return consumer.run_once


def recount_of_ratings(world: World, limited: World) -> Callable[[], object]:
    reader = Reader(limited.log(), Stars(limited.connect(), "ratings0"))
    while not reader.run_once().did_nothing:
        pass
    world.connection.execute("INSERT INTO ratings (id, ride_id, stars) SELECT id, id, 5 FROM rides")
    world.connection.execute(RECOUNT)
    return reader.run_once


def minutes(_world: World, limited: World) -> Callable[[], object]:
    leading = lead(limited)
    return lambda: hurry(leading)


def dirty_minutes(world: World, limited: World) -> Callable[[], object]:
    leading = lead(limited)
    hurry(leading)
    [(minute, ride)] = world.connection.execute("SELECT minute::text, upto FROM ride_minutes")
    leading.dirty.add([Mark(minute, ride)])
    return lambda: work(leading)


def sweep(world: World, limited: World) -> Callable[[], object]:
    desk = world.exits.enter_context(closing(Desk(limited)))
    return lambda: desk.do(SWEEP, upto=world.truth[0], page=100)


@pytest.mark.parametrize(
    ("prepare", "table"),
    [
        (reset, "rides"),
        (recount, "rides"),
        (recount_of_ratings, "ratings"),
        (minutes, "rides"),
        (dirty_minutes, "rides"),
        (sweep, "rides"),
    ],
)
def test_what_a_policy_hides_from_who_sums_changes_nothing(
    world: World,
    limited: World,
    prepare: Callable[[World, World], Callable[[], object]],
    table: str,
) -> None:
    world.send(1, 2, 3, 4)
    work = prepare(world, limited)
    hide(world, table)
    before = world.connection.execute(DERIVED).fetchall()
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match=SAID.format(table)):
        work()
    assert world.connection.execute(DERIVED).fetchall() == before


def test_the_feed_does_not_skip_what_a_policy_hides(world: World, limited: World) -> None:
    world.send(1, 2, 3)
    role = f"{world.stream}_role"
    world.connection.execute(f"GRANT CREATE ON SCHEMA public TO {role}")
    world.connection.execute(f"ALTER VIEW log_records OWNER TO {role}")
    hide(world, "rides")
    with connected(limited) as connection:
        with pytest.raises(DBAPIError, match=SAID.format("rides")):
            feed.page(connection, Asked(None, None, None, None))
        show(world, "rides")
        page = feed.page(connection, Asked(None, None, None, None))
    assert len(json.loads(page.get_data())) == 3
    world.connection.execute("ALTER VIEW log_records OWNER TO CURRENT_USER")


@pytest.mark.parametrize("limited", ["off"], indirect=True)
def test_the_api_takes_rides_under_a_policy_whatever_its_roles_default(
    world: World, limited: World
) -> None:
    hide(world, "rides", shown="true")
    with opened(limited) as database:
        with database.connect() as connection:
            require_readiness(connection)
        assert booking.take(database, Decimal(5), None).distance == 5
    assert world.value("SELECT count(*) FROM rides") == 1
