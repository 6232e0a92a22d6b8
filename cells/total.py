"""`python -m cells.total WAREHOUSE...`: one exact total of all cells, from their tables.

Each cell reconciles itself; in the log of its table, its newest run says what the rides add up to,
block by block, and up to which position they are proven. Spark adds up each table again, and the
total is told only if every block agrees. So a cell that is down is stale in the total, never wrong.

A WAREHOUSE is a cell's WAREHOUSE_DIR, or a copy of that. It is only read. The exit status is 0 when
all cells are in the total, 1 when one is missing, 2 when there is no total, 70 for a bug.
"""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from analytics import foreign
from analytics.ledger import Broken, Ledger
from analytics.parquet import File
from analytics.pieces import Piece, by_block, total
from analytics.prerequisites import require_java, require_packages
from analytics.reconcile import BUG, COULD_NOT_RUN
from rocket_rides import settings
from rocket_rides.cells import CELL_SIZE, LAST_CELL
from rocket_rides.words import metres
from unified_log.errors import Unavailable, in_one_line
from unified_log.process import Parser
from unified_log.words import aligned, count, number

if TYPE_CHECKING:
    from pyspark import SparkContext

NAME = "python -m cells.total"
COMPLETE, INCOMPLETE = 0, 1  # the exit status, beside analytics.reconcile's


class OpenTable(NamedTuple):
    """A cell's table, as its newest run has left it."""

    warehouse: str
    cell: int
    ledger: Ledger
    at: datetime  # of that run's commit
    root: str
    files: list[File]

    @property
    def owner(self) -> tuple[str, str]:
        """The database that the run read, and its newest term at the time."""
        newest = self.ledger.owners[-1]
        return newest.database_id, newest.term


def opened(place: str) -> OpenTable:
    """The table in a warehouse. Raises Unavailable if it can't be read, or is not one cell's."""
    from analytics.warehouse import Warehouse

    try:
        warehouse = Warehouse(place if "://" in place else os.path.abspath(place))
        table = warehouse.table
        if (newest := warehouse.commit()) is None:
            raise Unavailable(f"{place} has no table of rides that a reconciliation has written")
        at, committed = newest
        ledger = table.ledger(committed.ledger)
        files = table.files()
    except Broken as error:
        raise Unavailable(f"{place} can't be believed: {error}") from None
    when = datetime.fromtimestamp(at / 1000, UTC)
    return OpenTable(place, cell_of(place, ledger), ledger, when, table.store.root, files)


def cell_of(warehouse: str, ledger: Ledger) -> int:
    """The cell whose ids the rides have. Raises Unavailable unless they are those of one."""
    ends = [id_ for block in ledger.blocks if block.rides for id_ in (block.first, block.last)]
    found = {(id_ - 1) // CELL_SIZE for id_ in ends}
    if len(found) == 1 and found <= {*range(LAST_CELL + 1)}:
        return found.pop()
    whose = f"rides of the cells {_listed(found)}" if found else "no rides yet"
    raise Unavailable(f"{warehouse} has {whose}; it needs those of one cell, 0 to {LAST_CELL}")


def require_one_of_each(tables: Sequence[OpenTable]) -> None:
    """Raise Unavailable if two tables are the same cell's: their rides would count twice."""
    for one, two in combinations(tables, 2):
        if one.cell == two.cell:
            history = "of one history" if one.owner == two.owner else "of different histories"
            whose = f"are both cell {one.cell}'s, {history}"
            raise Unavailable(f"{one.warehouse} and {two.warehouse} {whose}: give one of them")


def require_as_proven(spark: "SparkContext", table: OpenTable) -> None:
    """Raise Unavailable unless Spark adds up the rides to what the ledger says of each block."""
    from analytics.look import sums
    from analytics.rides import what
    from analytics.session import SPARK_ERRORS

    try:
        parts = by_block(sums(spark, table.root, table.files)).values()
    except SPARK_ERRORS as error:
        raise Unavailable(f"{table.warehouse} can't be read: {what(error)}") from None
    found = [
        Piece(min(each.first for each in of), max(each.last for each in of),
              *total(each.tally for each in of))
        for of in parts
    ]  # fmt: skip
    proven = [  # an approval may leave a block without rides
        Piece(block.first, block.last, *block.tally) for block in table.ledger.blocks if block.rides
    ]
    if different := sorted({*found} ^ {*proven}):
        where = f"{table.warehouse} differs from what was proven, from ride {different[0].first} on"
        raise Unavailable(f"{where}: python -m analytics.reconcile --full there rebuilds it")


def report(tables: Sequence[OpenTable], missing: set[int]) -> Iterator[str]:
    """A line for each cell, one for all; what each has closed; and a sentence of the missing."""
    rows = [("cell", "rides", "distance, m", "proven up to", "at, UTC")]
    for table in tables:
        rides, distance = table.ledger.total
        upto, at = number(table.ledger.position), f"{table.at:%Y-%m-%d %H:%M:%S}"
        rows.append((str(table.cell), number(rides), metres(distance), upto, at))
    rides, distance = total(table.ledger.total for table in tables)
    oldest = min(row[-1] for row in rows[1:])
    rows.append(("all", number(rides), metres(distance), "the oldest:", oldest))
    yield from aligned(rows, "<>>>>")
    for table in tables:
        if closed := [each for each in table.ledger.closings if not each.reopened]:
            how_many, last = count(len(closed), "closing"), closed[-1]
            sums = f"{count(last.rides, 'ride')}, {metres(last.distance)} m"
            upto = f"up to position {number(last.position)}"
            yield f"Cell {table.cell} has {how_many}, the newest {upto}: {sums}."
    if missing:
        yield f"Missing, and not in the total: {_listed(missing)}."


def _listed(cells: set[int]) -> str:
    return ", ".join(map(str, sorted(cells)))


def unite(warehouses: Sequence[str], expected: int, master: str) -> int:
    """Print the report, and return the exit status. Raises Unavailable: then nothing is printed."""
    require_packages()
    tables = sorted(map(opened, warehouses), key=lambda table: table.cell)
    require_one_of_each(tables)
    require_java()
    from analytics.session import session

    with session(master) as spark:
        for table in tables:
            require_as_proven(spark, table)
    found = {table.cell for table in tables}
    missing = {*range(max(expected, *found))} - found
    print("\n".join(report(tables, missing)))  # noqa: T201
    return INCOMPLETE if missing else COMPLETE


def main() -> None:
    """Add up the tables, and end the process with the status."""
    signal.signal(signal.SIGINT, lambda number, _: os._exit(128 + number))  # as in reconcile
    parser = Parser(NAME, __doc__)
    parser.add_argument("warehouses", nargs="+", metavar="WAREHOUSE")
    expect = "how many cells there are, numbered from 0; by default, all up to the highest given"
    parser.add_argument("--expect", type=int, default=0, metavar="N", help=expect)
    options, config = parser.parse_args(), settings.load()
    foreign.keep_out(config.spark_master)
    try:
        status = unite(options.warehouses, options.expect, config.spark_master)
    except (Unavailable, OSError) as reason:
        sys.stderr.write(f"no total: {in_one_line(reason)}\n")
        status = COULD_NOT_RUN
    except BaseException:  # also a panic of delta-rs; Python would exit with 1
        sys.excepthook(*sys.exc_info())
        status = BUG
    raise SystemExit(status)


if __name__ == "__main__":
    main()
