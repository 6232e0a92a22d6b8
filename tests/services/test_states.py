"""A state that would outlive its checkpoint is refused at once: a recount would count it twice."""

from collections.abc import Sequence
from typing import ClassVar

import pytest

from consumers.rides import Ride
from tests.support.listing import Listing, hurry
from tests.support.world import World
from unified_log.errors import Unavailable
from unified_log.readers.reader import Reader

KEY = "kind text DEFAULT 'sums', name text, n bigint DEFAULT 0, PRIMARY KEY (kind, name)"
GOES = "FOREIGN KEY (kind, name) REFERENCES readers (kind, name) ON DELETE CASCADE"
LASTING = f"CREATE TABLE sums ({KEY})"
GOING = f"CREATE TABLE sums ({KEY}, {GOES})"
SUMS = "INSERT INTO sums (name) VALUES ('one')"
ADD = "UPDATE sums SET n = n + %s WHERE name = %s RETURNING n"
RECOUNT = "UPDATE checkpoints SET recount = true"
NOTHING = "DROP TABLE IF EXISTS parts, other, sums; DELETE FROM checkpoints; DELETE FROM readers"
ALL_ONCE = "SELECT n = (SELECT count(*) FROM rides) FROM sums"

# What the state is in, and how it begins.
LASTS = {
    "as it is": [LASTING, SUMS],
    "if it is not there": [LASTING, f"{SUMS} ON CONFLICT DO NOTHING"],
    "in a function": [LASTING, f"DO $$ BEGIN {SUMS}; END $$"],
    "in a partition": [
        f"CREATE TABLE sums ({KEY}) PARTITION BY LIST (kind);"
        " CREATE TABLE part PARTITION OF sums DEFAULT",
        SUMS,
    ],
    "with a key that deletes nothing": [GOING.replace(" ON DELETE CASCADE", ""), SUMS],
    "beside one that goes": [
        f"{GOING}; CREATE TABLE other (n int)",
        SUMS,
        "INSERT INTO other VALUES (0)",
    ],
}
GOES_WITH_IT = {
    "as it is": [GOING, SUMS],
    "if it is not there": [GOING, f"{SUMS} ON CONFLICT DO NOTHING"],
    "with a row of its own": [
        f"{GOING}; CREATE TABLE parts (kind text, name text, FOREIGN KEY (kind, name)"
        " REFERENCES sums ON DELETE CASCADE)",
        SUMS,
        "INSERT INTO parts VALUES ('sums', 'one')",
    ],
    "in a partition": [
        f"CREATE TABLE sums ({KEY}, {GOES}) PARTITION BY LIST (kind);"
        " CREATE TABLE part PARTITION OF sums DEFAULT",
        SUMS,
    ],
    "by way of a temporary table": [
        GOING,
        "CREATE TEMP TABLE start ON COMMIT DROP AS SELECT 'one' AS name",
        "INSERT INTO start VALUES ('two')",
        "INSERT INTO sums (name) SELECT name FROM start WHERE name = 'one'",
    ],
}


class Sums(Listing):
    """How many rides there are; it begins as it is told."""

    KIND = "sums"
    BEGIN: ClassVar[Sequence[str]] = ()

    def begin(self) -> None:
        for statement in self.BEGIN:
            self.connection.execute(statement.encode())

    def load(self, at: object) -> None:
        pass

    def take(self, records: Sequence[object]) -> None:
        self.write_state(ADD, len(records))


class Recounting(Sums):
    """With a recount of its own."""

    def recount(self, upto: int) -> None:
        self.connection.execute("UPDATE sums SET n = 0")
        super().recount(upto)


class Never(Sums):
    RECOUNTS = False


def begin(world: World, kind: type[Sums] = Sums) -> Reader[Listing]:
    return Reader(world.log(), kind(world.connect(), "one"))


def made(world: World, monkeypatch: pytest.MonkeyPatch, state: Sequence[str]) -> None:
    tables, *begins = state
    world.connection.execute(NOTHING, prepare=False)
    world.connection.execute(tables.encode(), prepare=False)
    monkeypatch.setattr(Sums, "BEGIN", begins)


def test_a_state_that_would_outlive_its_checkpoint_is_refused_at_the_first_start(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for where, state in LASTS.items():
        made(world, monkeypatch, state)
        with pytest.raises(Unavailable, match=r"twice.*REFERENCES readers .* ON DELETE CASCADE"):
            begin(world)
        assert world.value("SELECT count(*) FROM checkpoints") == 0, where
        assert world.value("SELECT count(*) FROM sums") == 0, where


def test_one_that_goes_with_it_begins_and_begins_anew(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for where, state in GOES_WITH_IT.items():
        made(world, monkeypatch, state)
        recounted(world, begin(world))
        assert world.value(ALL_ONCE), where


def test_a_state_is_one_row(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table may have that of another kind of the same name."""
    made(world, monkeypatch, GOES_WITH_IT["as it is"])
    reader = begin(world)
    world.connection.execute("INSERT INTO checkpoints (kind, name) VALUES ('others', 'one')")
    world.connection.execute("INSERT INTO sums VALUES ('others', 'one')")
    world.send(1)
    with pytest.raises(Unavailable, match=r"2 rows are the state of one: .* name the kind"):
        hurry(reader)
    assert world.value("SELECT sum(n) FROM sums") == 0


def test_a_handler_that_does_not_start_over_may_keep_its_state_anywhere(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in (Recounting, Never):
        made(world, monkeypatch, LASTS["if it is not there"])
        recounted(world, begin(world, kind))
        assert world.value(ALL_ONCE), kind


def recounted(world: World, reader: Reader[Listing]) -> None:
    """Once it has counted rides, it is to begin anew, if it does that."""
    world.send(1, 2, 3)
    hurry(reader)
    world.connection.execute(f"{RECOUNT} WHERE recount IS NOT NULL")
    hurry(reader)


def test_one_that_has_lost_its_foreign_key_is_not_counted_twice(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(world, monkeypatch, GOES_WITH_IT["if it is not there"])
    reader = begin(world)
    world.send(1, 2, 3)
    hurry(reader)
    world.connection.execute("ALTER TABLE sums DROP CONSTRAINT sums_kind_name_fkey")
    world.connection.execute(RECOUNT)
    with pytest.raises(Unavailable, match="one begins with a state in sums, which"):
        hurry(reader)
    assert world.value("SELECT n FROM sums") == 3


def test_what_else_is_written_at_a_recount_is_nobodys_state(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `take` wrote in this session, and what the deleted checkpoint leaves."""
    made(world, monkeypatch, GOES_WITH_IT["as it is"])
    world.connection.execute(
        "CREATE TABLE notes (kind text, name text,"
        " FOREIGN KEY (kind, name) REFERENCES readers ON DELETE SET NULL)"
    )
    world.connection.execute("CREATE TABLE seen (n bigint)")
    reader = begin(world)
    take = reader.handler.take

    def noting(records: Sequence[Ride]) -> None:
        reader.handler.connection.execute("INSERT INTO seen VALUES (%s)", [len(records)])
        take(records)

    monkeypatch.setattr(reader.handler, "take", noting)
    world.connection.execute("INSERT INTO notes SELECT kind, name FROM readers")
    world.send(1, 2, 3)
    hurry(reader)
    world.connection.execute(RECOUNT)
    hurry(reader)
    assert world.value("SELECT n FROM sums") == 3


def test_one_that_is_there_before_its_checkpoint_is_told_with_what_it_lacks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(world, monkeypatch, LASTS["as it is"])
    world.connection.execute(SUMS)
    advice = "one begins, and has a state already .* REFERENCES readers .* ON DELETE CASCADE"
    with pytest.raises(Unavailable, match=advice):
        begin(world)
