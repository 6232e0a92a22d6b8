"""`python -m consumers.remove`: a reader leaves, and leaves behind that it was removed."""

import pytest

from rocket_rides import database, sessions
from tests.support.resets import ask
from tests.support.world import World, catch_up, exact

ADD = "INSERT INTO checkpoints (kind, name) VALUES (%s, %s)"
THERE = "SELECT kind, name FROM checkpoints ORDER BY kind, name"
REMOVED = "SELECT kind, name, removed_by = session_user FROM removed_readers ORDER BY removed_at"


RIGHTS = """
    CREATE ROLE {role} LOGIN;
    GRANT SELECT ON alembic_version, checkpoints TO {role};
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
    for reader in (("outside", "a\nb"), ("billing", "a")):
        world.connection.execute(ADD, reader)
    assert said(world, 1, "total", "a") == (
        "not removed: there is no reader total a; there is billing a, outside a b"
    )
    assert world.connection.execute(REMOVED).fetchall() == []


@pytest.mark.parametrize(
    ("kind", "session"),
    [
        ("total", "consumer mine"),
        ("total", "consumer mine (starting)"),
        ("ratings", sessions.reader("ratings", "mine")),
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


@pytest.mark.parametrize("arguments", [[], ["total"], ["total", "a", "b"]])
def test_a_command_that_names_no_reader_is_refused(world: World, arguments: list[str]) -> None:
    assert "consumers.remove: " in said(world, 2, *arguments)
