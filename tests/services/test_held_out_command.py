"""`python -m unified_log.held_out`: a person lists what is held out, retries it or drops it."""

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import psycopg
import pytest

from tests.support.held_out import hold_out, note
from tests.support.roles import as_role
from tests.support.world import Service, World, catch_up, eventually, transaction
from unified_log import held_out
from unified_log.errors import RecordRefused

Say = Callable[..., tuple[int, list[str]]]
STATES = (
    "SELECT kind, name, position, retry, dropped_at IS NULL FROM held_out_records ORDER BY 1, 2, 3"
)
TOTAL = "SELECT total_distance FROM consumer_states"
TOTAL0 = "total", "consumer0"


@pytest.fixture
def say(world: World, capsys: pytest.CaptureFixture[str]) -> Say:
    """The command, in this process: its exit status, and the lines that it prints."""

    def say(*words: str | int) -> tuple[int, list[str]]:
        status = held_out.run(world.connection, held_out.parse([*map(str, words)]))
        return status, capsys.readouterr().out.splitlines()

    return say


@pytest.fixture
def rides(world: World) -> list[int]:
    """Four rides: one total holds out the first three, another reader a record of its own."""
    rides = world.send(1, 2, 3, 4)
    catch_up(world.consumer())
    hold_out(world, "consumer0", *rides[:3])
    world.connection.execute("INSERT INTO checkpoints (kind, name) VALUES ('other', 'a b')")
    note(world, "a b", rides[0], "other", reason="it\nis \x1b[31m red")
    return rides


def test_all_are_listed_whoever_holds_them_out(say: Say, rides: list[int]) -> None:
    status, lines = say("list")
    assert status == 0
    begins = [f"other a b {rides[0]}", *(f"total consumer0 {ride}" for ride in rides[:3])]
    assert [line.partition(":")[0] for line in lines] == begins
    assert ": ride.create, held out since 20" in lines[1]
    assert lines[1].endswith("Z, after 1 attempt: too long")
    assert lines[0].endswith("it\\nis \\x1b[31m red")


def test_what_is_decided_is_decided_once(world: World, say: Say, rides: list[int]) -> None:
    one, two, three, four = rides
    assert say("retry", "total", "consumer0", one, two) == (
        0,
        [f"total consumer0 {ride}: to be tried again" for ride in (one, two)],
    )
    assert "after 1 attempt (to be tried again): too long" in say("list")[1][1]
    assert say("drop", "total", "consumer0", three)[0] == 0
    assert "after 1 attempt (dropped): too long" in say("list")[1][3]
    assert say("drop", "total", "consumer0", three, four) == (
        1,
        [
            f"total consumer0 {three}: not done: it was dropped already",
            f"total consumer0 {four}: not done: it is not held out",
        ],
    )
    assert say("retry", "total", "consumer0", one) == (
        1,
        [f"total consumer0 {one}: not done: it is to be tried again already"],
    )
    assert say("retry", "total", "nobody", one, 10**30)[1] == [
        f"total nobody {each}: not done: there is no such reader" for each in (one, 10**30)
    ]
    assert world.connection.execute(STATES).fetchall()[1:] == [
        ("total", "consumer0", one, True, True),
        ("total", "consumer0", two, True, True),
        ("total", "consumer0", three, False, False),
    ]
    assert world.value(TOTAL) == 4  # nothing but the list has changed


def test_a_person_may_think_again(world: World, say: Say, rides: list[int]) -> None:
    """A retry is withdrawn, and what was dropped is tried again; --all overturns no decision."""
    one, two, *_ = rides
    say("retry", *TOTAL0, one)
    say("drop", *TOTAL0, two)
    assert len(say("drop", *TOTAL0, "--all")[1]) == 1
    assert say("drop", *TOTAL0, one) == (0, [f"total consumer0 {one}: dropped"])
    assert say("retry", *TOTAL0, two) == (0, [f"total consumer0 {two}: to be tried again"])
    catch_up(world.consumer())
    assert world.value(TOTAL) == 4 + 2
    assert say("retry", "--all")[1] == [f"other a b {rides[0]}: to be tried again"]


def test_what_a_consumer_is_just_counting_cannot_be_dropped(
    world: World, say: Say, rides: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = world.consumer()
    take, commands = consumer.handler.take, list[Service]()

    def meanwhile(records: Sequence[Any]) -> None:
        commands.append(drop_by_another(world, rides[0]))
        take(records)

    monkeypatch.setattr(consumer.handler, "take", meanwhile)
    say("retry", *TOTAL0, rides[0])
    assert consumer.run_once().retried
    [command] = commands
    assert command.ends() == 1
    assert f"{rides[0]}: not done: it is not held out" in command.output.read_text()
    assert world.value(TOTAL) == 4 + 1


def test_what_is_refused_again_while_it_is_dropped_is_dropped(
    world: World, say: Say, rides: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer, commands = world.consumer(), list[Service]()

    def meanwhile(_: Sequence[Any]) -> None:
        commands.append(drop_by_another(world, rides[0]))
        raise RecordRefused("too long")

    monkeypatch.setattr(consumer.handler, "take", meanwhile)
    say("retry", *TOTAL0, rides[0])
    assert consumer.run_once().retried
    [command] = commands
    assert command.ends() == 0
    assert "after 2 attempts (dropped): too long" in say("list")[1][1]


def test_a_consumer_does_not_count_what_is_dropped_before_it_begins(
    world: World, say: Say, rides: list[int]
) -> None:
    """It waits for the drop, which has not committed yet."""
    say("retry", *TOTAL0, rides[0])
    with transaction(world) as person:
        held_out.change(person, held_out.parse(["drop", *TOTAL0, str(rides[0])]))
        world.service("consumers.totals", "consumer0")
        eventually(lambda: world.waiting == 1)
        person.commit()
    world.send(5)
    eventually(lambda: world.value(TOTAL) == 4 + 5)
    assert "(dropped)" in say("list")[1][1]


def drop_by_another(world: World, ride: int) -> Service:
    """A command that waits for a row which this process has locked."""
    command = world.service("unified_log.held_out", "drop", *TOTAL0, str(ride))
    eventually(lambda: world.waiting == 1)
    return command


def test_all_of_one_reader_or_of_everybody(world: World, say: Say, rides: list[int]) -> None:
    assert len(say("retry", "total", "consumer0", "--all")[1]) == 3
    assert say("drop", "--all") == (0, [f"other a b {rides[0]}: dropped"])
    assert say("retry", "--all") == (0, ["no record waits for a decision"])
    world.connection.execute("DELETE FROM held_out_records")
    assert say("list") == (0, ["no record is held out"])


@pytest.mark.parametrize(("before", "first", "second", "status", "says"), [
    (None, "drop", "drop", 1, "not done: it was dropped already"),
    (None, "drop", "retry", 0, "to be tried again"),
    ("retry", "drop", "retry", 0, "to be tried again"),
    ("drop", "retry", "drop", 0, "dropped"),
])  # fmt: skip
def test_of_two_people_the_second_has_the_last_word(
    world: World, rides: list[int], say: Say,
    before: str | None, first: str, second: str, status: int, says: str,
) -> None:  # fmt: skip
    """He waits for the first, who has not committed yet."""
    one, *_ = rides
    if before:
        say(before, *TOTAL0, str(one))
    with transaction(world) as person:
        held_out.change(person, held_out.parse([first, *TOTAL0, str(one)]))
        command = world.service("unified_log.held_out", second, *TOTAL0, str(one))
        eventually(lambda: world.waiting == 1)
        person.commit()
    assert command.ends() == status
    assert f"{one}: {says}" in command.output.read_text()


RIGHTS = """
    GRANT SELECT ON held_out_records, checkpoints TO {role};
    GRANT UPDATE (retry, dropped_at) ON held_out_records TO {role}
"""


def test_a_role_needs_few_rights(world: World, rides: list[int]) -> None:
    with as_role(world, RIGHTS) as limited, closing(limited.connect()) as person:
        given = held_out.parse(["drop", "total", "consumer0", str(rides[0])])
        assert len(held_out.change(person, given)) == 1
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            person.execute("DELETE FROM held_out_records")


@pytest.mark.parametrize(
    "words",
    [
        "", "retry", "drop", "retry total", "retry total consumer0", "drop total consumer0",
        "retry total consumer0 1 --all", "retry total --all", "list total", "list --all",
        "retry total consumer0 one", "delete total consumer0 1", "retry \udcff consumer0 1",
    ],
)  # fmt: skip
def test_each_mistake_is_one_line(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        held_out.parse(words.split())
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("python -m unified_log.held_out: ")
    assert said.count("\n") == 1
