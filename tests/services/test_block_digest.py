"""The digest of a block, as a person asks Postgres for it, is the one that the job makes."""

import re
from array import array

import pyarrow as pa

from analytics import from_postgres, rows
from analytics.from_postgres import for_executors, this_table
from rocket_rides.settings import PROJECT
from tests.support.world import World
from unified_log.database import one_row

STATEMENT = re.compile(r"^SELECT encode\(sha256\(.+?;$", re.DOTALL | re.MULTILINE)
START = 89 * 10**14  # cell 89
RIDES = """
    INSERT INTO rides (id, created_at, distance) OVERRIDING SYSTEM VALUE
    SELECT %s + id, created_at::timestamptz, distance FROM (VALUES
        (1, 'infinity', 1.000), (2, '-infinity', 0.001), (3, '0001-01-01 00:00Z', 999999999.999),
        (4, '294276-12-31 23:59:59.999999Z', 539.837), (5, '1969-12-31 23:59:59.999999Z', 7),
        (6, '2026-11-21 03:00:00.000001Z', 8), (99998, '9999-12-31 00:00Z', 9),
        (100000, '9999-12-31 00:00:00.000001Z', 10), (100001, '4000-01-01 BC', 11)
    ) AS taken (id, created_at, distance)
"""


def asked(world: World, after: int, upto: int) -> str:
    """What the statement in the documentation says of the rides with `after < id <= upto`."""
    [statement] = STATEMENT.findall((PROJECT / "docs/reconcile.md").read_text())
    digits = iter([str(after), str(upto)])
    where = statement.rpartition("WHERE")
    ends = re.sub(r"\d+", lambda _: next(digits), where[2])
    assert "id >" in ends
    assert "id <=" in ends
    [said] = one_row(world.connection.execute("".join([*where[:2], ends])))
    return str(said)


def test_the_documented_statement_makes_the_digest_of_a_run(world: World) -> None:
    """Of infinity, of years that Python lacks, and of ids in the last cell."""
    world.connection.execute("ALTER TABLE rides DISABLE TRIGGER ALL")
    url, table = for_executors(world.postgres_url), this_table(world.connection)
    for start in (0, START):
        world.connection.execute(RIDES, [start])
        for first, last in [(0, 100_000), (3, 6), (100_000, 200_000), (0, 200_000)]:
            after, upto = start + first, start + last
            read = from_postgres.read(url, table, after, upto)
            count = "SELECT count(*) FROM rides WHERE id > %s AND id <= %s"
            assert len(read.ids) == world.value(count, after, upto)
            assert read.digest(after, upto) == asked(world, after, upto)


def test_what_a_stranger_has_left_empty_is_a_number_of_its_own() -> None:
    """Arrow's columns begin anywhere in their buffers."""
    ids, other = pa.array([0, 1, 2]), pa.array([0, None, 7])
    read = rows.of_columns(ids[1:], other[1:], other[1:])
    assert read == rows.Rows(array("q", [1, 2]), *[array("q", [rows.NONE, 7])] * 2)
    assert rows.of_columns(*[pa.array([], pa.int64())] * 3) == rows.EMPTY
