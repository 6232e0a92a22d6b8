"""`python -m consumers.remove`: a reader leaves, and leaves behind that it was removed."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from consumers import remove
from rocket_rides import sessions
from tests.support.resets import ask
from tests.support.roles import as_role
from tests.support.rollup import complete_to, hurry, is_complete, kept, lead
from tests.support.world import World, catch_up, eventually, exact, transaction
from unified_log import database
from unified_log.errors import Refused
from unified_log.sessions import reader, starting

ADD = "INSERT INTO checkpoints (kind, name) VALUES (%s, %s)"
THERE = "SELECT kind, name FROM checkpoints ORDER BY kind, name"
REMOVED = "SELECT kind, name, removed_by = session_user FROM removed_readers ORDER BY removed_at"
NOTED = "SELECT kind, name, position - cell_start() FROM removed_readers ORDER BY removed_at"
# A reconciliation that came to an end, and a reader that it saw.
SEEN = """
    INSERT INTO runs (status, ended_at, position, readers)
    SELECT %s, now(), cell_start(), jsonb_build_array(
        jsonb_build_object('kind', %s::text, 'name', %s::text, 'position', cell_start() + %s::int)
    )
"""
RIGHTS = """
    GRANT SELECT ON schema_versions, checkpoints, runs, receipts_state TO {role};
    GRANT DELETE ON checkpoints TO {role};
    GRANT INSERT ON removed_readers TO {role}
"""


def said(world: World, status: int, *arguments: str, **environment: str) -> str:
    """What the command says, in one line; its status must be this one."""
    command = world.service("consumers.remove", *arguments, **environment)
    assert command.ends() == status
    [line] = command.output.read_text().splitlines()
    return line


def removed(world: World, kind: str, name: str) -> int:
    """Where a reader stood that is removed, from its cell's start."""
    return remove.remove(world.connection, kind, name) - world.start


def refused(world: World, kind: str, name: str) -> str:
    """Why it is not removed."""
    with pytest.raises(Refused) as refusal:
        remove.remove(world.connection, kind, name)
    return str(refusal.value)


def test_a_reader_goes_with_all_that_it_has_and_a_row_says_so(world: World) -> None:
    """Its checkpoint says where it stood, not the last run, which is a while ago."""
    world.send(1, 2)
    for name in ("gone", "stays"):
        catch_up(world.consumer(name))
    ask(world, name="gone")
    world.connection.execute(SEEN, ["agreed", "total", "gone", 1])
    stood = world.start + 2
    assert said(world, 0, "total", "gone") == f"removed total gone, which stood at position {stood}"
    assert world.connection.execute(THERE).fetchall() == [("total", "stays")]
    assert world.value("SELECT count(*) FROM resets") == 0
    assert world.connection.execute("SELECT name FROM consumer_states").fetchall() == [("stays",)]
    assert world.connection.execute(REMOVED).fetchall() == [("total", "gone", True)]
    assert world.connection.execute(NOTED).fetchall() == [("total", "gone", 2)]


def test_a_reader_that_only_the_last_run_knows_is_removed(world: World) -> None:
    """Somebody deleted its checkpoint. Runs before the last completed one count no more."""
    for number, status in enumerate(("agreed", "wrong", "held")):
        world.connection.execute(SEEN, ["agreed", "total", "older", 3])
        world.connection.execute(SEEN, [status, "total", status, 7])
        world.connection.execute(SEEN, ["failed", "total", "newer", 3])
        for name in ("older", "newer"):
            why = f"there is no reader total {name}; there is total {status}"
            assert refused(world, "total", name) == why
        assert removed(world, "total", status) == 7
        assert world.connection.execute(NOTED).fetchall()[number:] == [("total", status, 7)]


@pytest.mark.parametrize(("last", "now"), [(1, 2), (2, 1)])
def test_the_receipts_are_removed_where_they_were_furthest(
    world: World, last: int, now: int
) -> None:
    world.connection.execute(SEEN, ["agreed", "receipts", "all", last])
    world.connection.execute(
        "UPDATE receipts_state SET inbox_to = inbox_to + %(now)s, complete_to = inbox_to + %(now)s",
        {"now": now},
    )
    there = "there is no reader receipts receipts; there is group receipts"
    assert refused(world, "receipts", "receipts") == there
    assert removed(world, "group", "receipts") == 2
    assert world.connection.execute(NOTED).fetchall() == [("receipts", "all", 2)]


def test_minutes_leave_only_with_their_rollup(world: World) -> None:
    world.connection.execute(SEEN, ["agreed", "minutes", "all", 1])
    assert refused(world, "minutes", "all") == "there is no reader minutes all; there is none"


def test_the_rollup_goes_with_its_minutes_and_another_begins_anew(world: World) -> None:
    """Else they would be wrong for ever once a ride is deleted; also those that were set aside."""
    world.send(1, 2)
    hurry(lead(world))
    world.connection.execute(
        "INSERT INTO set_aside_minutes SELECT minute, upto, 'slow', 3 FROM ride_minutes"
    )
    assert removed(world, "rollup", "rollup") == 2
    assert (complete_to(world), kept(world)) == (world.start, [])
    assert world.value("SELECT count(*) FROM set_aside_minutes") == 0
    hurry(lead(world))
    assert is_complete(world)


def test_a_removal_has_the_time_at_which_it_got_its_lock(world: World) -> None:
    """A run that began while it waited has seen the reader."""
    world.connection.execute(ADD, ["total", "gone"])
    with ThreadPoolExecutor(1) as beside:
        with transaction(world) as paused:
            paused.execute("SELECT FROM checkpoints FOR UPDATE")
            removing = beside.submit(remove.remove, world.connect(), "total", "gone")
            eventually(lambda: world.waiting)
            [began] = world.connection.execute("SELECT clock_timestamp()").fetchone() or []
        removing.result()
    assert world.value("SELECT count(*) FROM removed_readers WHERE removed_at > %s", began) == 1


def test_who_was_removed_begins_anew_and_can_be_removed_again(world: World) -> None:
    world.send(1, 2)
    for _ in range(2):
        consumer = world.consumer()
        assert consumer.at.position == world.start
        assert exact(world, consumer)
        assert removed(world, "total", "consumer0") == 2
    assert world.value("SELECT count(*) FROM removed_readers") == 2


def test_the_rights_in_the_docs_are_enough(world: World) -> None:
    world.consumer("gone")
    with as_role(world, RIGHTS) as limited:
        url = limited.postgres_url
        assert said(world, 0, "total", "gone", DATABASE_URL=url).startswith("removed total gone")


def test_a_reader_that_is_not_there_is_not_removed(world: World) -> None:
    assert refused(world, "total", "a") == "there is no reader total a; there is none"
    for given in (("outside", "a\nb"), ("billing", "a")):
        world.connection.execute(ADD, given)
    assert said(world, 1, "total", "a") == (
        "not removed: there is no reader total a; there is billing a, outside a b"
    )
    assert said(world, 1, "total", "\udcff").startswith("not removed: ")  # a byte that is no UTF-8
    assert world.connection.execute(REMOVED).fetchall() == []


def test_a_reader_that_is_running_is_not_removed(world: World) -> None:
    """Nor the receipts, while any worker delivers them."""
    for kind, session in (
        ("total", "reader total mine"),
        ("total", "reader total mine (starting)"),
        ("ratings", reader("ratings", "mine")),
        ("rollup", sessions.ROLLUP),
    ):
        world.connection.execute(f"{ADD} ON CONFLICT DO NOTHING", [kind, "mine"])
        with database.connect(world.postgres_url, session):
            why = f"{kind} mine is running; stop its process first"
            assert refused(world, kind, "mine") == why
    for session in (
        sessions.receipts("worker"),
        starting(sessions.receipts("worker")),
        sessions.inbox("worker"),
    ):
        with database.connect(world.postgres_url, session):
            for name in (("receipts", "all"), ("group", "receipts")):
                assert refused(world, *name) == "receipts still run: stop them first"
    assert world.value("SELECT count(*) FROM checkpoints") == 3
    assert world.connection.execute(REMOVED).fetchall() == []


def test_a_command_that_names_no_reader_is_refused(world: World) -> None:
    for arguments in ([], ["total"], ["total", "a", "b"]):
        assert "consumers.remove: " in said(world, 2, *arguments)
