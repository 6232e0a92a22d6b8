"""`python -m consumers.remove`: a reader leaves, and leaves behind that it was removed."""

import pytest

from rocket_rides import sessions
from tests.support.resets import ask
from tests.support.world import World, catch_up, eventually, exact, transaction
from unified_log import database
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
    CREATE ROLE {role} LOGIN;
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


def test_a_reader_goes_with_all_that_it_has_and_a_row_says_so(world: World) -> None:
    world.send(1, 2)
    for name in ("gone", "stays"):
        catch_up(world.consumer(name))
    ask(world, name="gone")
    stood = world.start + 2
    assert said(world, 0, "total", "gone") == f"removed total gone, which stood at position {stood}"
    assert world.connection.execute(THERE).fetchall() == [("total", "stays")]
    assert world.value("SELECT count(*) FROM resets") == 0
    assert world.connection.execute("SELECT name FROM consumer_states").fetchall() == [("stays",)]
    assert world.connection.execute(REMOVED).fetchall() == [("total", "gone", True)]
    assert world.connection.execute(NOTED).fetchall() == [("total", "gone", 2)]


@pytest.mark.parametrize("status", ["agreed", "wrong", "held"])
def test_a_reader_that_only_the_last_run_knows_is_removed(world: World, status: str) -> None:
    """Somebody deleted its checkpoint. Runs before the last completed one count no more."""
    world.connection.execute(SEEN, ["agreed", "total", "older", 3])
    world.connection.execute(SEEN, [status, "total", "lost", 7])
    world.connection.execute(SEEN, ["failed", "total", "newer", 3])
    for name in ("older", "newer"):
        assert said(world, 1, "total", name) == (
            f"not removed: there is no reader total {name}; there is total lost"
        )
    stood = world.start + 7
    assert said(world, 0, "total", "lost") == f"removed total lost, which stood at position {stood}"
    assert world.connection.execute(NOTED).fetchall() == [("total", "lost", 7)]


def test_its_checkpoint_says_where_a_reader_stood(world: World) -> None:
    """Not the last run, which is a while ago."""
    world.send(1, 2)
    catch_up(world.consumer("here"))
    world.connection.execute(SEEN, ["agreed", "total", "here", 1])
    said(world, 0, "total", "here")
    assert world.connection.execute(NOTED).fetchall() == [("total", "here", 2)]


@pytest.mark.parametrize(("last", "now", "noted"), [(1, 2, 2), (2, 1, 2)])
def test_the_receipts_are_removed_where_they_were_furthest(
    world: World, last: int, now: int, noted: int
) -> None:
    world.connection.execute(SEEN, ["agreed", "receipts", "all", last])
    world.connection.execute(
        "UPDATE receipts_state SET inbox_to = inbox_to + %(now)s, complete_to = inbox_to + %(now)s",
        {"now": now},
    )
    there = "not removed: there is no reader receipts receipts; there is group receipts"
    assert said(world, 1, "receipts", "receipts") == there
    assert said(world, 0, "group", "receipts").startswith("removed group receipts")
    assert world.connection.execute(NOTED).fetchall() == [("receipts", "all", noted)]


def test_minutes_leave_only_with_their_rollup(world: World) -> None:
    world.connection.execute(SEEN, ["agreed", "minutes", "all", 1])
    assert said(world, 1, "minutes", "all") == (
        "not removed: there is no reader minutes all; there is none"
    )


def test_a_removal_has_the_time_at_which_it_got_its_lock(world: World) -> None:
    """A run that began while it waited has seen the reader."""
    world.connection.execute(ADD, ["total", "gone"])
    with transaction(world) as paused:
        paused.execute("SELECT FROM checkpoints FOR UPDATE")
        command = world.service("consumers.remove", "total", "gone")
        eventually(lambda: world.waiting)
        [began] = world.connection.execute("SELECT clock_timestamp()").fetchone() or []
    assert command.ends() == 0
    assert world.value("SELECT count(*) FROM removed_readers WHERE removed_at > %s", began) == 1


def test_who_was_removed_begins_anew_and_can_be_removed_again(world: World) -> None:
    world.send(1, 2)
    for _ in range(2):
        consumer = world.consumer()
        assert consumer.at.position == world.start
        assert exact(world, consumer)
        said(world, 0, "total", "consumer0")
    assert world.value("SELECT count(*) FROM removed_readers") == 2


def test_the_rights_in_the_docs_are_enough(world: World) -> None:
    role = f"{world.stream}_role"
    world.consumer("gone")
    world.connection.execute(RIGHTS.format(role=role), prepare=False)
    url = world.postgres_url.replace("postgres@", f"{role}@")
    assert said(world, 0, "total", "gone", DATABASE_URL=url).startswith("removed total gone")
    world.connection.execute(f"DROP OWNED BY {role}")
    world.connection.execute(f"DROP ROLE {role}")


def test_a_reader_that_is_not_there_is_not_removed(world: World) -> None:
    assert said(world, 1, "total", "a") == (
        "not removed: there is no reader total a; there is none"
    )
    for given in (("outside", "a\nb"), ("billing", "a")):
        world.connection.execute(ADD, given)
    assert said(world, 1, "total", "a") == (
        "not removed: there is no reader total a; there is billing a, outside a b"
    )
    assert world.connection.execute(REMOVED).fetchall() == []


@pytest.mark.parametrize(
    ("kind", "session"),
    [
        ("total", "reader total mine"),
        ("total", "reader total mine (starting)"),
        ("ratings", reader("ratings", "mine")),
        ("rollup", sessions.ROLLUP),
    ],
)
def test_a_reader_that_is_running_is_not_removed(world: World, kind: str, session: str) -> None:
    world.connection.execute(ADD, [kind, "mine"])
    with database.connect(world.postgres_url, session):
        assert said(world, 1, kind, "mine") == (
            f"not removed: {kind} mine is running; stop its process first"
        )
    assert world.connection.execute(THERE).fetchall() == [(kind, "mine")]
    assert world.connection.execute(REMOVED).fetchall() == []


@pytest.mark.parametrize(
    "session",
    [
        sessions.receipts("worker"),
        starting(sessions.receipts("worker")),
        sessions.inbox("worker"),
    ],
)
def test_receipts_that_any_worker_delivers_are_not_removed(world: World, session: str) -> None:
    with database.connect(world.postgres_url, session):
        for name in (("receipts", "all"), ("group", "receipts")):
            assert said(world, 1, *name) == "not removed: receipts still run: stop them first"
    assert world.connection.execute(REMOVED).fetchall() == []


@pytest.mark.parametrize("arguments", [[], ["total"], ["total", "a", "b"]])
def test_a_command_that_names_no_reader_is_refused(world: World, arguments: list[str]) -> None:
    assert "consumers.remove: " in said(world, 2, *arguments)
