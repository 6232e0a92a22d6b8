"""The night as docker-compose.yml runs it, under a role of its own, and totals that it asks."""

from collections.abc import Callable
from pathlib import Path

import pytest

from demo.embedded.servers import Redis
from tests.support.deployed import deployed
from tests.support.jobs import SPARK_PATIENCE
from tests.support.world import eventually

TAMPER = "UPDATE consumer_states SET total_distance = total_distance + 1 WHERE name = 'consumer1'"


@pytest.mark.usefixtures("java")
def test_a_wrong_total_is_found_and_repaired_by_their_own_roles(
    redis_of_kind: Callable[[str], Redis], tmp_path: Path
) -> None:
    with deployed(redis_of_kind("valkey"), tmp_path) as (fleet, world, _):
        for name in ("streamer", "consumer0", "consumer1"):
            fleet.start(world, name)
        world.take("1.001", "2.002", "3.003")
        totals = ("consumer0", "consumer1")
        eventually(lambda: {world.standing(name) for name in totals} == {world.truth})
        world.connection.execute(TAMPER)
        given = fleet.environment("reconciler") | {"WAREHOUSE_DIR": str(tmp_path / "warehouse")}
        night = world.service("analytics.reconcile", **given)
        assert night.ends(SPARK_PATIENCE) == 1, night.output.read_text()
        eventually(lambda: world.standing("consumer1") == world.truth, "the repaired total")
        assert world.value("SELECT count(*) FROM runs WHERE status = 'wrong'") == 1
        assert "permission denied" not in world.postgres.log.read_text()
