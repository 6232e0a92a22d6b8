"""docs/lift-it.md is complete: what it has one lift works beside an application that has orders."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path

import pytest

from demo.embedded.servers import Postgres, Redis
from tests.support.clusters import fresh_world
from tests.support.disasters import flush
from tests.support.lifted import PAGE, Shop, lift
from tests.support.receiver import Receiver
from tests.support.world import eventually

MOST_WORDS = 600
# Alembic alone can import what it runs.
IMPORT_ALL = """
import importlib, pathlib
for path in sorted(pathlib.Path().rglob("*.py")):
    if path.parts[:2] != ("migrations", "versions") and path.name != "env.py":
        importlib.import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
"""
BEHIND = "SELECT last_sent_id - position FROM streamer_state, checkpoints"
FROM_THE_LOG = "SELECT count(*) - (SELECT records_healed FROM checkpoints) FROM orders"


def test_the_page_is_short() -> None:
    assert len(PAGE.split()) <= MOST_WORDS


@pytest.mark.parametrize("parts", ["a", "ad"])
def test_each_part_can_be_imported_without_those_that_it_does_not_need(
    parts: str, tmp_path: Path
) -> None:
    lift(parts, tmp_path)
    subprocess.run([sys.executable, "-c", IMPORT_ALL], cwd=tmp_path, env={}, check=True)


@pytest.fixture
def opened(postgres: Postgres, redis: Redis, tmp_path: Path) -> Iterator[Callable[[str], Shop]]:
    """Opens a shop, in a database of its own, with some of the page's parts."""
    with ExitStack() as until_the_end:

        def open_shop(parts: str) -> Shop:
            world = until_the_end.enter_context(fresh_world(postgres, redis, tmp_path, {}))
            return Shop(parts, world)

        yield open_shop


def test_the_total_of_all_orders_is_exact_through_a_crash_and_a_log_that_is_wiped(
    opened: Callable[[str], Shop],
) -> None:
    shop = opened("ab")
    shop.run("-m", "streamer").says("leading")
    consumer = shop.run("-m", "consumers", "money").says("healed a gap in the log: 100 orders")
    customer = shop.customer("ann", 1_000_000)

    def moves_on() -> None:
        stood, _ = shop.total
        eventually(lambda: shop.total[0] > stood + 100, "the total")

    moves_on()
    consumer.kill()
    eventually(lambda: shop.world.value(BEHIND) > 100, "what the log alone could tell")
    flush(shop.world)
    shop.run("-m", "consumers", "money").says("healed a gap in the log")
    moves_on()
    customer.kill()
    eventually(shop.exact, "the exact total")
    assert shop.world.value("SELECT count(*) FROM staged_log_records") == 0
    assert shop.world.value(FROM_THE_LOG) > 100


def test_each_order_has_its_receipt_but_for_those_of_before(
    opened: Callable[[str], Shop], receiver: Receiver
) -> None:
    shop = opened("abc")
    shop.run("-m", "streamer").says("leading")
    shop.worker(receiver.url)
    assert shop.customer("ann", 50).ends() == 0
    eventually(lambda: shop.delivered(150), "all receipts")
    told = [json.loads(request.body) for request in receiver.requests]
    assert {receipt["type"] for receipt in told} == {"order.receipt"}
    orders: dict[int, Decimal] = dict(
        shop.connection.execute("SELECT id, amount FROM orders WHERE id > 100")
    )
    assert Counter(receipt["data"]["ride_id"] for receipt in told) == Counter(orders.keys())
    assert all(
        receipt["data"]["amount"] == float(orders[receipt["data"]["ride_id"]]) for receipt in told
    )
