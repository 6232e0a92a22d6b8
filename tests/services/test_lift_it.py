"""docs/lift-it.md is complete: with its code alone, a shop's handler is exact whatever happens."""

import re
from collections.abc import Callable, Iterator

import psycopg
import pytest
import sqlalchemy
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy.orm import Mapped, mapped_column

from demo.embedded.servers import Postgres, Redis
from rocket_rides.settings import PROJECT
from tests.support import package
from tests.support.clusters import fresh_world
from tests.support.disasters import flush
from tests.support.killed import killed_midway
from tests.support.lifted import KIND, MODEL, NAME, PAGE, Shop
from tests.support.orders.models import Order
from tests.support.world import eventually
from unified_log.database import one_row

README = (PROJECT / "unified_log/README.md").read_text()
PUT_RIGHT, COUNT_ANEW = re.findall(r"^```sql\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)[-2:]
MOST_WORDS = 300  # of its text
BEHIND = "SELECT last_sent_id - position FROM streamer_state, checkpoints"
ORDER = """
    INSERT INTO orders (id, customer, amount) VALUES (gen_random_uuid(), 'bob', %s)
    RETURNING position
"""


def test_the_page_is_short() -> None:
    text = re.sub(r"^```\w+\n.*?^```$", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert len(text.split()) <= MOST_WORDS


@pytest.fixture(scope="module")
def shop(
    postgres: Postgres,
    redis_of_kind: Callable[[str], Redis],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Shop]:
    """In a database of its own, with a streamer. Each test ends the consumer that it starts."""
    folder = tmp_path_factory.mktemp("shop")
    with fresh_world(postgres, redis_of_kind("valkey"), folder, {}) as world:
        shop = Shop(world, package.build(folder))
        shop.run("unified_log.streamer").says("leading")
        yield shop


def test_it_needs_nothing_of_the_application_and_leaves_the_shops_revisions_alone(
    shop: Shop,
) -> None:
    packages = [path.parent.name for path in PROJECT.glob("*/__init__.py")]
    assert shop.importable(*packages) == ["unified_log"]
    known = shop.connection.execute("SELECT version_num FROM alembic_version").fetchall()
    assert known == [("log",)]


def test_autogenerate_proposes_nothing_of_the_logs(shop: Shop) -> None:
    metadata = sqlalchemy.MetaData()
    orders = Order.__table__.to_metadata(metadata)  # type: ignore[attr-defined]
    given = vars(sqlalchemy) | {"Mapped": Mapped, "mapped_column": mapped_column}
    given["target_metadata"] = metadata
    exec(MODEL, given)  # noqa: S102
    position = given["position"].column
    position.name = position.key = "position"
    position.nullable = False  # as of Mapped[int]
    orders.append_column(position)
    url = shop.world.postgres_url.replace("postgresql:", "postgresql+psycopg:")
    with sqlalchemy.create_engine(url).connect() as connection:
        options = {"include_name": given["include_name"], "compare_type": False}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []


def test_orders_from_before_the_log_are_read_from_it(shop: Shop) -> None:
    consumer = shop.takings()
    eventually(shop.exact, "all orders")
    assert shop.world.value("SELECT records_healed FROM checkpoints") == 0
    assert shop.standing.orders == 100
    consumer.kill()


def test_an_order_that_commits_late_is_waited_for(shop: Shop) -> None:
    consumer = shop.takings()
    with psycopg.connect(shop.world.postgres_url) as late:
        [position] = one_row(late.execute(ORDER, [5]))
        assert shop.places(20).ends() == 0
        eventually(lambda: shop.standing.position == position - 1, "all that came before it")
        assert shop.world.value("SELECT last_sent_id FROM streamer_state") == position - 1
    eventually(shop.exact, "all orders")
    assert shop.world.value("SELECT records_healed FROM checkpoints") == 0
    consumer.kill()


def test_an_order_that_is_refused_is_held_out_and_counts_after_a_retry(shop: Shop) -> None:
    consumer = shop.takings()
    eventually(shop.exact, "all orders")
    before = shop.standing.orders
    shop.connection.execute("ALTER TABLE takings ADD CONSTRAINT small CHECK (largest < 10000)")
    [position] = one_row(shop.connection.execute(ORDER, [12_345]))
    consumer.says(f"{NAME} held out order.create {position}")
    assert shop.places(20).ends() == 0
    eventually(lambda: shop.standing[:2] == (position + 20, before + 20), "all others")
    consumer.kill()
    shop.connection.execute("ALTER TABLE takings DROP CONSTRAINT small")
    consumer = shop.takings()
    with killed_midway(shop.world, consumer, "takings"):
        retry = shop.run("unified_log.held_out", "retry", KIND, NAME, str(position))
        assert retry.ends() == 0
    consumer = shop.takings().says(f"{NAME} counts order.create {position}, which was held out")
    assert shop.exact()
    assert shop.world.value("SELECT count(*) FROM held_out_records") == 0
    consumer.kill()


def moves_on(shop: Shop) -> None:
    stood = shop.standing.position
    eventually(lambda: shop.standing.position > stood + 50, "orders that are counted")


def test_it_is_exact_through_crashes_and_a_log_that_is_wiped(shop: Shop) -> None:
    customer = shop.places(1_000_000)
    for _ in range(3):
        consumer = shop.takings()
        with killed_midway(shop.world, consumer, "takings"):
            pass  # the customer does it
    eventually(lambda: shop.world.value(BEHIND) > 100, "what the log alone could tell")
    flush(shop.world)
    shop.takings().says("healed a gap in the log")
    moves_on(shop)
    customer.kill()
    eventually(shop.exact, "the exact total")
    assert shop.world.value("SELECT count(*) FROM staged_log_records") == 0
    assert shop.world.value("SELECT records_healed FROM checkpoints") > 100


def test_data_with_the_shops_key_as_its_id_is_put_right(shop: Shop) -> None:
    """As unified_log/README.md says; first it is made wrong in the same way."""
    consumer = shop.takings()
    eventually(shop.exact, "all orders")
    wrong = PUT_RIGHT.replace("'id', position", "'id', id")
    assert wrong != PUT_RIGHT
    shop.connection.execute(wrong.encode(), prepare=False)
    assert shop.places(20).ends() == 0
    consumer.says(f"{NAME} stands still: 10 records in a row were refused")
    assert "'id' must be the record's position, not your key" in consumer.output.read_text()
    shop.connection.execute(PUT_RIGHT.encode(), prepare=False)
    flush(shop.world)
    shop.connection.execute(COUNT_ANEW.encode())
    eventually(shop.exact, "all orders")
    assert shop.places(20).ends() == 0
    eventually(shop.exact, "all orders")
    assert shop.world.value("SELECT count(*) FROM held_out_records") == 0
    consumer.kill()
