"""Closing a period, and verifying those that are closed: everything up to there is read once more.

Spark's tasks read each block on both sides, as rows. It counts if its digest and its sum are the
same in Postgres, in the warehouse and in the ledger.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

import psycopg

from analytics import closable, closings, evidence, runs
from analytics.asking import spark_with_deadline
from analytics.findings import which
from analytics.freeze import Frozen, freeze
from analytics.ledger import Ledger
from analytics.look import Look
from analytics.ownership import require_no_repair
from analytics.person import person
from analytics.pieces import total
from analytics.plain import require_same
from analytics.prerequisites import require_java
from analytics.progress import shown
from analytics.result import Result, Tally
from analytics.rides import Rides
from analytics.steps import RunStep
from analytics.upto import Upto
from analytics.warehouse import Warehouse
from rocket_rides.locks import Lock
from rocket_rides.settings import Settings
from rocket_rides.words import command, metres
from unified_log.database import one_row
from unified_log.errors import Unavailable
from unified_log.faults import reached
from unified_log.words import count, number

WHO = f"{command('analytics.reconcile')} says who is right"
# A repair of the log that has not begun reopens what this commits: it waits for the lock.
LOCK = "SELECT pg_advisory_xact_lock_shared(%s)"
# The row's number, time and hashes are the table's own.
CLOSE = """
    INSERT INTO closings (position, rides, total_distance, digest, run_id, ledger, closed_by)
    VALUES (%s, %s, %s, %s, %s, %s, %s || ' as ' || session_user) RETURNING id
"""


class Standing(NamedTuple):
    """What there is, before anything is read again."""

    frozen: Frozen
    warehouse: Warehouse
    ledger: Ledger
    digest: str  # of the ledger's file


def close(connection: psycopg.Connection, config: Settings, upto: Upto) -> str:
    """Close the rides up to there; returns what to say. Raises Unavailable: then nothing is."""
    now = datetime.now(UTC)
    last = closable.require_agreement(connection)
    there = standing(connection, config)
    files = there.warehouse.table.files()
    if upto.before is not None:  # whether or not a run has read all before it
        closable.require_old(upto.before, now, config.idempotency_days)
    position = upto.position(connection, files, there.ledger.position)
    closable.require_old(upto.ends(files, position), now, config.idempotency_days)
    closable.require_next(closings.read(connection), there.ledger.closings, position)
    closable.require_counted(last, position)
    closable.require_past(connection, there.frozen, position)
    with reading(connection, config, there) as rides:
        for differing, _ in unlike(rides, there.ledger, position):
            raise Unavailable(f"{differing}: {WHO}")
        [cut] = rides.look([closings.cut(position)])
        if cut.postgres != cut.warehouse:  # since then
            raise Unavailable(f"Postgres and the warehouse differ in {which(cut)}: {WHO}")
    found = closings.balance(there.ledger, position, cut.of_postgres, cut.postgres)
    if not found.tally.rides:
        raise Unavailable(f"there is no ride up to {upto.said}")
    values = [position, *found.tally, found.digest, last.id, there.digest, person()]
    with connection.transaction():
        connection.execute(LOCK, [Lock.CLOSINGS])
        require_same(connection, there.frozen.tables)
        [id_] = one_row(connection.execute(CLOSE, values))
        reached(RunStep.BEFORE_COMMIT)
        require_no_repair(connection, there.frozen.history)
    return f"Closing {id_}, up to position {number(position)}: {_sums(found)}."


def verify(connection: psycopg.Connection, config: Settings) -> tuple[str, bool]:
    """Read all that is closed again, on both sides; returns what to say, and whether it agrees.

    Raises Unavailable.
    """
    rows = closings.read(connection)
    there = standing(connection, config)
    problems = list(closings.altered(rows, there.ledger.closings))
    said = [f"Closing {id_} {how}." for id_, how in problems]
    held = closings.valid(rows)
    if not held:
        return "\n".join([*said, "Nothing is closed."]), not problems
    with reading(connection, config, there) as rides:
        differing = list(unlike(rides, there.ledger, held[-1].position))
        cuts = rides.look([closings.cut(each.position) for each in held])
    said += [f"{sentence}." for sentence, _ in differing]
    agree = not said
    for each, cut in zip(held, cuts, strict=True):
        found = closings.balance(there.ledger, each.position, cut.of_warehouse, cut.warehouse)
        where = f"Closing {each.id}, up to position {number(each.position)}"
        if any(after < each.position for _, after in differing):
            said.append(f"{where}: not compared, since rides below it differ.")
        elif found == closings.says(each):
            said.append(f"{where}: {_sums(found)}, in Postgres and in the warehouse.")
        else:
            agree = False
            said.append(f"{where}: it says {_sums(closings.says(each))}; the files {_sums(found)}.")
    return "\n".join(said), agree


def standing(connection: psycopg.Connection, config: Settings) -> Standing:
    """What there is. Raises Unavailable unless the warehouse is as the last run left it."""
    warehouse = Warehouse(config.warehouse)
    require_java()
    frozen = freeze(connection)
    known = evidence.known(
        warehouse, frozen.history, runs.known_ledgers(connection),
        full=False, had_rides=False, result=Result(datetime.now(UTC)),
    )  # fmt: skip
    closable.require_known(known)
    committed = warehouse.newest()
    return Standing(frozen, warehouse, known.ledger, committed.ledger if committed else "")


@contextmanager
def reading(connection: psycopg.Connection, config: Settings, there: Standing) -> Iterator[Rides]:
    """Both copies of the rides, in a Spark session. Raises Unavailable or psycopg.Error."""
    with spark_with_deadline(config) as spark:
        show = partial(shown, spark)
        yield Rides(connection, spark, there.warehouse, config.postgres_url, show, writes=False)


def unlike(rides: Rides, ledger: Ledger, upto: int) -> Iterator[tuple[str, int]]:
    """The blocks below a position that are not the same everywhere: a sentence, where it begins."""
    blocks = {block.after: block for block in ledger.blocks if block.after < upto}
    for look in rides.look(evidence.asks([*blocks.values()], (), ledger.position)):
        block = blocks[look.after]
        if look.postgres != look.warehouse:
            yield f"Postgres and the warehouse differ in {which(look)}", look.after
        elif look.postgres != block.digest or _tally(look) != block.tally:
            yield f"{which(look)} are not those that an earlier run has proven", look.after


def _tally(look: Look) -> Tally:
    return total(piece.tally for piece in look.of_postgres)


def _sums(of: closings.Balance) -> str:
    return f"{count(of.tally.rides, 'ride')}, {metres(of.tally.distance)} m"
