"""docs/add-a-kind.md is true: a third kind of record, made as it says, counts exactly."""

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest
import sqlalchemy
from jsonschema import validate
from psycopg.types.json import Jsonb
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import StaticPool

from lab.contracts.payloads import payloads
from rocket_rides.settings import PROJECT
from tests.support import tips
from tests.support.disasters import flush, stranded
from tests.support.newer import Release
from tests.support.tips import SUMS, TIP, Tips, tip
from tests.support.world import World, drain, eventually
from unified_log.readers.reader import Reader
from unified_log.repair import repair

PAGE = (PROJECT / "docs/add-a-kind.md").read_text()
KIND, STAGED_IN_SQL = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
REVISION, IN_PSYCOPG, IN_A_SESSION, STRUCT = re.findall(
    r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL
)
BY_TRIGGER = KIND.replace("$$\n);", "$$, stages => true);")
READ = "SELECT (SELECT cents FROM tip_sums WHERE name = %s), (SELECT sum(cents) FROM tips)"


def attach(world: World, kind: str = KIND) -> None:
    world.connection.execute((kind + SUMS).encode(), prepare=False)


def agrees(world: World, name: str = "tips0") -> bool:
    kept, truth = world.connection.execute(READ, [name]).fetchone() or (0, 1)
    return bool(kept == truth)


def give(world: World, *cents: int) -> None:
    for each in cents:
        world.connection.execute(TIP, [1, each])


def test_the_page_is_short() -> None:
    assert len(PAGE.split()) <= 500


def test_its_struct_is_the_one_that_the_tests_handle() -> None:
    assert STRUCT in inspect.getsource(tips)


@pytest.mark.proves("third-kind")
def test_a_kind_that_is_added_while_the_fleet_runs_counts_through_crashes_and_a_lost_log(
    world: World, tmp_path: Path
) -> None:
    """By a revision of the next release, of which the rest of the fleet is not."""
    next_release = Release(tmp_path / "newer").add("0012_tips.sql", KIND)
    next_release.add("0012_tips.py", REVISION)
    total = world.service("consumers.totals", "consumer0", CRASH_RATE="0.2").says("stands at")
    world.service("streamer", DOUBLE_SEND_RATE="0.2").says("leading")
    world.take(1, 2)
    next_release.migrate(world)
    world.connection.execute(SUMS)
    give(world, 100, 250)
    world.take(3)
    eventually(lambda: world.standing()[1] == world.truth[1] and world.staged() == 0)
    next_release.service(world, "tests.support.tips", "tips0", CRASH_RATE="0.2").says("stands at")
    eventually(lambda: agrees(world))
    flush(world)
    give(world, 50)
    world.take(4)
    eventually(lambda: agrees(world) and world.standing() == world.truth)
    assert "Traceback" not in total.output.read_text()
    world.service("consumers.totals", "late").says("stands at")
    eventually(lambda: world.standing("late") == world.truth)


class Base(DeclarativeBase):
    pass


class Tip(Base):
    __tablename__ = "tips"

    id: Mapped[int] = mapped_column(
        sqlalchemy.BigInteger, sqlalchemy.Sequence("log_position"), primary_key=True
    )
    ride_id: Mapped[int]
    cents: Mapped[int]


@contextmanager
def session(world: World) -> Iterator[Session]:
    def connect() -> psycopg.Connection[Any]:
        return psycopg.connect(world.postgres_url)

    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://", creator=connect, poolclass=StaticPool
    )
    with Session(engine) as session, session.begin():
        yield session
    engine.dispose()


def by_session(world: World, code: str) -> None:
    with session(world) as opened:
        names = {**vars(sqlalchemy), "JSONB": JSONB, "Tip": Tip, "session": opened}
        exec(code, names)  # noqa: S102 (the page's)


def by_psycopg(world: World, code: str) -> None:
    exec(code, {"connection": world.connection, "Jsonb": Jsonb})  # noqa: S102


def by_sql(world: World, code: str) -> None:
    world.connection.execute(code.encode())


@pytest.mark.parametrize(
    ("run", "code", "kind"),
    [
        (by_sql, STAGED_IN_SQL, KIND),
        (by_psycopg, IN_PSYCOPG, KIND),
        (by_session, IN_A_SESSION, KIND),
        (by_session, "session.add(Tip(ride_id=1, cents=100))", BY_TRIGGER),
    ],
)
def test_each_way_to_stage_sends_what_the_row_says(
    world: World, run: Callable[[World, str], None], code: str, kind: str
) -> None:
    attach(world, kind)
    run(world, code)
    reader = Reader(world.log(), Tips(world.connect(), "tips0"))
    told = "SELECT id, type, data FROM {} ORDER BY id"
    staged = world.connection.execute(told.format("staged_log_records")).fetchall()
    assert staged == world.connection.execute(told.format("log_records")).fetchall()
    [(_, type_, data)] = staged
    validate(data, payloads(tips)[type_])
    drain(world.streamer())
    reader.run_once()
    assert world.value("SELECT cents FROM tip_sums") == 100
    assert world.value("SELECT gaps_healed FROM checkpoints") == 0


def test_a_stranded_record_of_it_is_repaired(world: World) -> None:
    attach(world)
    reader = Reader(world.log(), Tips(world.connect(), "tips0"))
    give(world, 100)
    drain(world.streamer())
    stranded(world)
    world.connection.execute("UPDATE tip_sums SET cents = 1")
    assert "tips tips0" in repair(world.connect())[1]
    for _ in range(3):
        reader.run_once()
    assert agrees(world)


class Newer(Tips):
    """Of a second version: what has another meaning has another type, and another table."""

    TYPES: ClassVar = {"tip.create": tip, "tip.create.2": tip}


SECOND = """
    CREATE TABLE tips_2 (LIKE tips INCLUDING ALL);
    SELECT attach('tips_2', 'id', 'tip.create.2',
        $$jsonb_build_object('id', id, 'ride_id', ride_id, 'cents', cents, 'in', 'EUR'::text)$$,
        stages => true)
"""


def test_an_old_and_a_new_reader_of_one_log_are_each_right(world: World) -> None:
    attach(world)
    world.connection.execute(SECOND, prepare=False)
    give(world, 100)
    world.connection.execute("INSERT INTO tips_2 (ride_id, cents) VALUES (1, 7)")
    give(world, 10)
    drain(world.streamer())
    for when in ("", " after a loss"):
        if when:
            flush(world)
        for kind, name in ((Tips, "old"), (Newer, "new")):
            reader = Reader(world.log(), kind(world.connect(), f"{name}{when}"))
            for _ in range(4):
                reader.run_once()
    sums = world.connection.execute("SELECT name, cents FROM tip_sums")
    assert dict(sums.fetchall()) == {
        "old": 110, "new": 117, "old after a loss": 110, "new after a loss": 117,
    }  # fmt: skip
