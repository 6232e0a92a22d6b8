"""The nightly proof works beside an application of orders, lifted as docs/lift-it.md says."""

import re
from pathlib import Path

import pytest

from demo.embedded.servers import Postgres, Redis
from tests.support.clusters import fresh_world
from tests.support.jobs import SPARK_PATIENCE
from tests.support.lifted import Shop
from tests.support.receiver import Receiver
from tests.support.world import eventually


@pytest.mark.usefixtures("java")
def test_a_total_of_orders_that_was_altered_is_found_and_repaired(
    postgres: Postgres, redis: Redis, receiver: Receiver, tmp_path: Path
) -> None:
    with fresh_world(postgres, redis, tmp_path, {}) as world:
        shop = Shop("abcd", world)
        shop.run("-m", "streamer").says("leading")
        shop.run("-m", "consumers", "money").says("stands at")
        shop.worker(receiver.url)
        assert shop.customer("ann", 50).ends() == 0
        eventually(shop.exact, "the exact total")
        eventually(lambda: shop.delivered(150), "all receipts")
        night = shop.run("-m", "analytics.reconcile")
        assert night.ends(SPARK_PATIENCE) == 0
        told = night.output.read_text()
        assert re.search("^receipts +150 orders up to position 150 +agrees$", told, re.M), told
        shop.connection.execute("UPDATE consumer_states SET total_distance = 7")
        night = shop.run("-m", "analytics.reconcile")
        assert night.ends(SPARK_PATIENCE) == 1, night.output.read_text()
        assert "The only consumer was wrong and will be reset." in night.output.read_text()
        eventually(shop.exact, "the exact total")
