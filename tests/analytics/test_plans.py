"""What Spark makes of the steps: what is read, how often rows are exchanged, and by whom."""

import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import TYPE_CHECKING

import pytest

from analytics.cells import by_cell
from analytics.minutes import by_minute
from analytics.warehouse import within

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tests.support.books import Books

FIRST_DAY = date(2026, 1, 1)
DAYS = 5
EXCHANGE = re.compile(r"^\W*(?:Shuffle|Broadcast)?Exchange\b", re.MULTILINE)
IN_PYTHON = ("Python", "Pandas", "InArrow", "ExistingRDD", "BatchScan")

Step = Callable[["DataFrame"], "DataFrame"]
STEPS: dict[str, tuple[Step, set[str]]] = {
    "cells": (lambda rides: by_cell(rides, [3, 30_000]), {"id", "distance"}),
    "minutes": (by_minute, {"id", "created_at", "distance"}),
}


def plan(frame: "DataFrame") -> str:
    """The plan that Spark has executed: each operator on a line of its own."""
    frame.collect()
    return str(frame._jdf.queryExecution().executedPlan().toString())


@pytest.fixture
def rides(books: "Books") -> "DataFrame":
    """Some days' rides, in a file for each day."""
    for number in range(DAYS):
        books.add_many(200, at=f"timestamptz '{FIRST_DAY + timedelta(number)} 12:00+00'")
    books.run()
    warehouse = books.warehouse
    return warehouse.read(books.spark, warehouse.table.files())


@pytest.mark.parametrize("name", STEPS)
def test_rides_are_added_up_before_the_one_exchange_and_never_in_python(
    rides: "DataFrame", name: str
) -> None:
    step, columns = STEPS[name]
    executed = plan(step(rides))
    final = executed.partition("Initial Plan")[0]
    assert len(EXCHANGE.findall(final)) == 1, executed
    before = final[EXCHANGE.search(final).end() :]  # type: ignore[union-attr]
    assert "partial_sum" in before, executed
    assert not any(word in executed for word in IN_PYTHON), executed
    [read] = {*re.findall(r"ReadSchema: struct<([^>]*)>", executed)}
    assert {*re.findall(r"(\w+):", read)} == columns


def test_only_the_files_of_the_wanted_blocks_are_read(books: "Books", rides: "DataFrame") -> None:
    warehouse = books.warehouse
    [block] = [block for block in warehouse.ledger().blocks if block.upto]
    wanted = [block.__class__(400, 600, 401, 600, block.rides, block.distance)]
    read = warehouse.read(books.spark, warehouse.files_of(wanted)).where(within(wanted))
    [file] = read.inputFiles()
    assert f"day={FIRST_DAY + timedelta(2)}" in file
    assert len(rides.inputFiles()) == DAYS
    assert read.count() == 200
