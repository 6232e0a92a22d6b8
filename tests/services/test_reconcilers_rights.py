"""The role that runs the reconciliation: the rights in migrations/rights.sql are enough."""

import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from psycopg import errors

from analytics import closings, runs
from analytics.case import LATER
from analytics.close import reopen
from analytics.closing import CLOSE
from analytics.emit import emit, past_runs, require_rights, set_back
from analytics.freeze import freeze
from analytics.ownership import require_no_repair
from analytics.plain import require_same
from analytics.proofs import outbox, ratings, receipts, rollup
from analytics.readers import missing
from analytics.result import (
    CountedRatings,
    RatingsVerdict,
    ReceiptsVerdict,
    Result,
    RollupVerdict,
    Tally,
    WrongMinute,
    WrongRides,
)
from rocket_rides.settings import PROJECT
from tests.support.world import World
from unified_log.errors import Unavailable

RIGHTS = (PROJECT / "migrations/rights.sql").read_text()
GRANTS = re.findall(r"^GRANT [^;]*? TO reconciler;", RIGHTS, re.MULTILINE)
MINUTE = datetime(2026, 3, 1, 10, 1, tzinfo=UTC)


@pytest.fixture
def reconciler(world: World) -> Iterator[World]:
    world.connection.execute("CREATE ROLE reconciler")
    yield world
    world.connection.execute("DROP OWNED BY reconciler; DROP ROLE reconciler", prepare=False)


def run(world: World) -> None:
    """Everything that a run asks of Postgres, where all of it is wrong."""
    connection = world.connect()
    connection.execute("SET ROLE reconciler")
    require_rights(connection)
    this = runs.begin_run(connection)
    last = runs.last_completed(connection)
    runs.known_ledgers(connection)
    runs.approved(connection, "0" * 64)
    runs.use_approval(connection, 1, this)
    this.note_ledger("0" * 64, {})
    frozen = freeze(connection)
    days = rollup.unproved_days(connection, rollup.proved_upto(connection), 9)
    days |= {MINUTE.date()}
    rollup.prove(connection, lambda _days: {}, days, frozen.position, 9)
    rollup.days_rolled_up(connection)
    proved = receipts.proved(connection)
    receipts.prove(connection, proved, frozen.position, random.Random(1))
    outbox.prove(connection)
    connection.execute(ratings.STAND)
    missing(connection, frozen, last)
    connection.execute(LATER, {"frozen": 0, "names": ["consumer0"]})
    require_same(connection, frozen.tables)
    require_no_repair(connection, frozen.history)
    wrong = WrongMinute(MINUTE, Tally(), Tally(), 1)
    result = Result(
        datetime.now(UTC),
        rollup=RollupVerdict(1, 1, [wrong]),
        receipts=ReceiptsVerdict(1, 1, WrongRides(1, (1,))),
        ratings=RatingsVerdict([CountedRatings("ratings0", 1, 1, 5, False, 0, 0)]),
    )
    with connection.transaction():
        emit(connection, result, ["consumer0"], [wrong])
        set_back(connection, result, [CountedRatings("ratings0", 1, 1, 5, False, 0, 0)])
        this.complete("held", 1, {}, [], frozen.readers, 0, None, 0, {})
    past_runs(connection)
    connection.execute(CLOSE, [1, 0, 0, "0" * 64, this.id, "0" * 64, "nobody"])
    assert closings.read(connection)


def test_the_rights_that_it_is_given_are_enough(reconciler: World) -> None:
    """And it may reopen nothing that it has closed."""
    assert len(GRANTS) == 8
    reconciler.connection.execute("\n".join(GRANTS), prepare=False)
    run(reconciler)
    connection = reconciler.connect()
    connection.execute("SET ROLE reconciler")
    with pytest.raises(errors.InsufficientPrivilege):
        reopen(connection, 1, "asked for")


def test_without_them_a_run_is_refused(reconciler: World) -> None:
    with pytest.raises(Unavailable, match="may not write to reconciliations, resets"):
        run(reconciler)
