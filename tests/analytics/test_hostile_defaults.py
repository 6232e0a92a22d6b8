"""Whatever defaults a database has, a fleet on it is exact; or it says what to change."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from demo.embedded.servers import Postgres, Redis
from migrations import upgrade
from rocket_rides.settings import Settings
from tests.support.clusters import fresh_world
from tests.support.everybody import at_work, is_reconciled
from tests.support.receipts import Staff
from tests.support.world import World
from unified_log import database

if TYPE_CHECKING:
    from pyspark import SparkContext

SERVICES = ("streamer", "consumers.rollup")
# What `ALTER DATABASE ... SET` is given, as SQL. What does not hide one another goes together.
HOSTILE = {
    "serializable, German, compiled, in parallel, and no index": {
        "default_transaction_isolation": "'serializable'",
        "default_transaction_deferrable": "on",
        "datestyle": "'German, DMY'",
        "intervalstyle": "'sql_standard'",
        "timezone": "'Asia/Kathmandu'",  # a zone with odd minutes
        "client_encoding": "'LATIN1'",
        "extra_float_digits": "-15",
        "bytea_output": "'escape'",
        "standard_conforming_strings": "off",
        "backslash_quote": "off",
        "jit": "on",
        "jit_above_cost": "0",
        "jit_inline_above_cost": "0",
        "jit_optimize_above_cost": "0",
        "max_parallel_workers_per_gather": "8",
        "parallel_setup_cost": "0",
        "parallel_tuple_cost": "0",
        "min_parallel_table_scan_size": "0",
        "min_parallel_index_scan_size": "0",
        "enable_indexscan": "off",
        "enable_indexonlyscan": "off",
        "plan_cache_mode": "force_custom_plan",
        "row_security": "off",
        "synchronous_commit": "off",
        "array_nulls": "off",
        "transform_null_equals": "on",
    },
    "repeatable read, another schema first, in haste, and no way to read or join is good": {
        "default_transaction_isolation": "'repeatable read'",
        "search_path": "elsewhere, public",
        "datestyle": "'SQL, MDY'",
        "intervalstyle": "'iso_8601'",
        "plan_cache_mode": "force_generic_plan",
        "statement_timeout": "'5s'",
        "lock_timeout": "'1s'",
        "idle_session_timeout": "'1s'",
        "idle_in_transaction_session_timeout": "'1s'",
        "exit_on_error": "on",
        "client_min_messages": "'error'",
        "enable_indexscan": "off",
        "enable_indexonlyscan": "off",
        "enable_bitmapscan": "off",
        "enable_seqscan": "off",
        "enable_tidscan": "off",
        "enable_nestloop": "off",
        "enable_hashjoin": "off",
        "enable_mergejoin": "off",
        "enable_sort": "off",
    },
}


@pytest.fixture
def world(
    request: pytest.FixtureRequest, postgres: Postgres, redis: Redis, tmp_path: Path
) -> Iterator[World]:
    with fresh_world(postgres, redis, tmp_path, request.param) as world:
        yield world


@pytest.mark.parametrize("world", HOSTILE.values(), ids=HOSTILE, indirect=True)
def test_a_fleet_is_exact_whatever_the_database_has_as_its_defaults(
    world: World, staff: Staff, spark: "SparkContext"
) -> None:
    upgrade(world.postgres_url, Settings().cell)
    at_work(world, staff)
    assert is_reconciled(world, staff, spark)


@pytest.mark.parametrize(
    ("defaults", "said", "by_others"),
    [
        (
            {"default_transaction_read_only": "on"},
            database.READ_ONLY,
            "the database's schema is empty",
        ),
        (
            {"search_path": "nowhere"},
            "create in: set search_path to a schema that exists",
            database.NOWHERE,
        ),
    ],
)
def test_what_cannot_be_served_is_told_in_a_sentence(
    defaults: dict[str, str],
    said: str,
    by_others: str,
    postgres: Postgres,
    redis: Redis,
    tmp_path: Path,
) -> None:
    with fresh_world(postgres, redis, tmp_path, defaults) as world:
        migration = world.service("migrations").says(said)
        others = [world.service(name).says(by_others) for name in SERVICES]
        assert not any("Traceback" in each.output.read_text() for each in (migration, *others))
