"""Kinds of records: what attach() refuses, each in a sentence, and what it takes."""

import psycopg
import pytest

from tests.support.world import World

ORDERS = """
    CREATE TABLE orders (
        key uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        position bigint NOT NULL UNIQUE DEFAULT nextval('log_position'),
        created_at timestamptz NOT NULL DEFAULT now(),
        amount numeric(12,2) NOT NULL CHECK (amount > 0),
        local timestamp, day date, span interval, ratio float8, small real, paid timestamptz,
        bytes bytea, stamps timestamptz[], during tstzrange, data jsonb
    );
"""
DATA = "jsonb_build_object('key', key, 'amount', amount)"
ATTACH = "SELECT attach(%s, %s, %s, %s)"
OF_ONE_ROW = "its data is an expression over the columns of one row of orders"
OTHER_IN_ANOTHER_SESSION = "the text of its data depends on the session's settings"
NOT_THE_SAME = "its data would not always be the same for a row: it calls "

POSITIONS = {
    "position integer NOT NULL UNIQUE DEFAULT nextval('log_position')": "is bigint NOT NULL",
    "position bigint UNIQUE DEFAULT nextval('log_position')": "is bigint NOT NULL",
    "place bigint PRIMARY KEY DEFAULT nextval('log_position')": "is bigint NOT NULL",
    "position bigint NOT NULL DEFAULT nextval('log_position')": "no unique index of its own",
    "position bigint NOT NULL DEFAULT nextval('log_position'),"
    " EXCLUDE USING btree (position WITH =)": "no unique index of its own",
    "position bigint NOT NULL DEFAULT nextval('log_position'), UNIQUE (position, amount)": (
        "no unique index of its own"
    ),
    "position bigint NOT NULL DEFAULT nextval('log_position'),"
    " EXCLUDE USING btree (position WITH =) WHERE (amount > 5)": "no unique index of its own",
    "position bigint NOT NULL DEFAULT nextval('log_position') UNIQUE DEFERRABLE": (
        "no unique index of its own"
    ),
    "position bigint PRIMARY KEY": "does not draw from log_position",
    "position bigserial PRIMARY KEY": "does not draw from log_position",
    "position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY": "does not draw from log_position",
    "position bigint PRIMARY KEY DEFAULT nextval('log_position') + 1": (
        "does not draw from log_position"
    ),
}
TIMES = ["created_at timestamp", "created_at date", "created timestamptz"]
VARYING = [
    "to_jsonb(paid)",
    "jsonb_build_object('paid', paid)",
    "to_jsonb(orders)",
    "to_jsonb(paid::text)",
    "to_jsonb(paid::date)",
    "to_jsonb(format('on %s', paid))",
    "to_jsonb(local::text)",
    "to_jsonb(day::text)",
    "to_jsonb(concat(day))",
    "to_jsonb(span)",
    "to_jsonb(ratio)",
    "to_jsonb(small)",
    "to_jsonb(bytes)",
    "to_jsonb(stamps)",
    "to_jsonb(during)",
]
EXPRESSIONS = {
    "to_json(amount)": "its data is json, and has to be jsonb",
    "amount::text": "its data is text, and has to be jsonb",
    "to_jsonb((SELECT max(last_sent_id) FROM streamer_state))": OF_ONE_ROW,
    "to_jsonb((SELECT 1))": OF_ONE_ROW,
    "jsonb_agg(amount)": OF_ONE_ROW,
    "to_jsonb(rank() OVER ())": OF_ONE_ROW,
    "jsonb_array_elements(data)": OF_ONE_ROW,
    "to_jsonb(ctid::text)": OF_ONE_ROW,
    "to_jsonb(random())": NOT_THE_SAME + "random()",
    "to_jsonb(now()::date)": NOT_THE_SAME + "now()",
    "to_jsonb(age(paid)::text)": NOT_THE_SAME + "age(timestamp with time zone)",
    "to_jsonb(current_user)": NOT_THE_SAME + "current_date, current_user or the like",
    "to_jsonb(nothing)": 'from one row of orders: column "nothing" does not exist',
    "to_jsonb(amount": "from one row of orders: syntax error",
}
GOOD = [
    DATA,
    "data",
    "to_jsonb(orders.data) || data",
    "to_jsonb(local)",  # in JSON, these two are as in ISO 8601 whatever the settings are
    "to_jsonb(day)",
    "to_jsonb(ratio::numeric)",
    "to_jsonb(to_char(paid AT TIME ZONE 'UTC', 'YYYY-MM-DD'))",
    "to_jsonb(extract(epoch FROM paid))",
    r"""to_jsonb(E'it''s 100%s\\'::text)""",
]
TYPES = ["order", "Order.create", "order.", "order create", "o'order.create", "o." + 56 * "o"]
NO_TABLES = {
    "CREATE VIEW orders AS SELECT 1 AS amount": "is no lasting table",
    "CREATE TEMP TABLE orders (amount int)": "is no lasting table",
    "CREATE UNLOGGED TABLE orders (amount int)": "is no lasting table",
    "CREATE FOREIGN DATA WRAPPER f; CREATE SERVER s FOREIGN DATA WRAPPER f;"
    " CREATE FOREIGN TABLE orders (amount int) SERVER s": "is no lasting table",
    "CREATE TABLE whole (LIKE rides INCLUDING DEFAULTS) PARTITION BY RANGE (id);"
    " CREATE TABLE orders PARTITION OF whole DEFAULT": "is a partition: attach the whole table",
    "CREATE TABLE orders (LIKE rides INCLUDING ALL); CREATE TABLE more () INHERITS (orders)": (
        "other tables inherit from orders"
    ),
}


def refusal(
    world: World,
    table: str,
    data: str = DATA,
    type_: str = "order.create",
    position: str = "position",
) -> str:
    """The sentence with which the table is refused as a kind; everything is as before."""
    with world.connection.transaction(force_rollback=True):
        world.connection.execute(table, prepare=False)
        with pytest.raises(psycopg.errors.CheckViolation) as refused:
            world.connection.execute(ATTACH, ["orders", position, type_, data])
    said = refused.value.diag.message_primary
    assert said is not None
    return said


@pytest.fixture
def world(module_world: World) -> World:
    return module_world


@pytest.mark.parametrize(("column", "reason"), POSITIONS.items())
def test_a_position_that_would_break_the_log_is_refused(
    world: World, column: str, reason: str
) -> None:
    table = f"CREATE TABLE orders (amount int NOT NULL, created_at timestamptz, {column})"
    assert reason in refusal(world, table, "to_jsonb(amount)")


@pytest.mark.parametrize("index", ["(position) WHERE amount > 5", "((position + 0))"])
def test_a_unique_index_of_something_else_is_not_enough(world: World, index: str) -> None:
    table = ORDERS.replace("position bigint NOT NULL UNIQUE", "position bigint NOT NULL")
    why = refusal(world, f"{table} CREATE UNIQUE INDEX ON orders {index}")
    assert "no unique index of its own" in why


@pytest.mark.parametrize("column", TIMES)
def test_another_time_than_timestamptz_is_refused(world: World, column: str) -> None:
    table = ORDERS.replace("created_at timestamptz", column)
    assert "has no column created_at that is timestamptz" in refusal(world, table)


@pytest.mark.parametrize("data", VARYING)
def test_data_that_is_said_otherwise_in_another_session_is_refused(world: World, data: str) -> None:
    assert OTHER_IN_ANOTHER_SESSION in refusal(world, ORDERS, data)


DOMAINS = """
    CREATE DOMAIN share AS integer NOT NULL CHECK (VALUE > 5);
    CREATE DOMAIN half AS share;
    CREATE DOMAIN moment AS timestamptz NOT NULL CHECK (VALUE > '2020-01-01');
    CREATE DOMAIN rate AS float8 NOT NULL;
    CREATE TYPE stay AS (room int, since timestamptz);
    CREATE TABLE orders (
        position bigint PRIMARY KEY DEFAULT nextval('log_position'),
        created_at timestamptz NOT NULL CHECK (created_at > '2020-01-01'),
        half half, moment moment, stay stay, rates rate[],
        moments moment[]  -- which takes no value of 2000
    );
"""


@pytest.mark.parametrize("data", ["moment", "rates", "orders", "stay", "created_at"])
def test_also_where_the_columns_have_constraints(world: World, data: str) -> None:
    assert OTHER_IN_ANOTHER_SESSION in refusal(world, DOMAINS, f"to_jsonb({data})")


def test_also_where_only_a_row_that_is_there_shows_it(world: World) -> None:
    table = ORDERS + "INSERT INTO orders (amount, paid) VALUES (7, now())"
    data = "CASE WHEN amount > 5 THEN to_jsonb(paid) ELSE '1' END"
    assert OTHER_IN_ANOTHER_SESSION in refusal(world, table, data)


@pytest.mark.parametrize(("data", "reason"), EXPRESSIONS.items())
def test_data_that_is_not_made_of_one_row_is_refused(world: World, data: str, reason: str) -> None:
    assert reason in refusal(world, ORDERS, data)


def test_a_function_of_the_applications_has_to_be_immutable(world: World) -> None:
    function = "CREATE FUNCTION told(numeric) RETURNS jsonb LANGUAGE sql {} RETURN to_jsonb($1)"
    why = refusal(world, ORDERS + function.format("STABLE"), "told(amount)")
    assert "it calls told(numeric), not IMMUTABLE" in why
    accepted(world, ORDERS + function.format("IMMUTABLE"), "told(amount)")


@pytest.mark.parametrize("type_", TYPES)
def test_a_type_without_an_object_and_an_action_is_refused(world: World, type_: str) -> None:
    assert "an object and an action" in refusal(world, ORDERS, type_=type_)


@pytest.mark.parametrize(("source", "reason"), NO_TABLES.items())
def test_what_is_no_table_of_its_own_is_refused(world: World, source: str, reason: str) -> None:
    assert reason in refusal(world, source, position="id")


def test_neither_a_type_nor_a_table_is_attached_twice(world: World) -> None:
    again = "it is one already: a new meaning needs a new type"
    assert again in refusal(world, ORDERS, type_="ride.create")
    attached = f"{ORDERS} SELECT attach('orders', 'position', 'order.create', 'to_jsonb(amount)')"
    assert "the table orders is one already" in refusal(world, attached, type_="order.create.2")


def accepted(world: World, table: str, data: str) -> None:
    """Attached; and what is staged of a row is what the view says of it, whoever stages."""
    with world.connection.transaction(force_rollback=True):
        world.connection.execute(table, prepare=False)
        attach = "SELECT attach('orders', 'position', 'order.create', %s, stages => true)"
        world.connection.execute(attach, [data])
        world.connection.execute(
            "INSERT INTO orders (amount, local, day, ratio, paid, data)"
            " VALUES (7, now(), now(), random(), now(), '{}')"
        )
        staged, told = world.connection.execute(
            "SELECT staged.data::text, record.data::text FROM staged_log_records staged"
            " JOIN log_records record USING (id, type) WHERE type = 'order.create'"
        ).fetchone() or (None, "nothing")
        assert staged == told


@pytest.mark.parametrize("data", GOOD)
def test_what_one_row_says_is_a_kind(world: World, data: str) -> None:
    accepted(world, ORDERS, data)


def test_whatever_its_names_are(world: World) -> None:
    lines = """
        CREATE TABLE "Order Lines" (
            "The Place" bigint PRIMARY KEY DEFAULT nextval('log_position'),
            tg_op text, "since %s" timestamptz(3) NOT NULL DEFAULT now(), "a ""b"" c" int
        );
        SELECT attach('"Order Lines"', 'The Place', 'order_line.create.2',
            $$jsonb_build_object('b', "a ""b"" c", 'op', "Order Lines".tg_op)$$, true, 'since %s');
        INSERT INTO "Order Lines" (tg_op, "a ""b"" c") VALUES ('x', 3)
    """
    with world.connection.transaction(force_rollback=True):
        world.connection.execute(lines.encode(), prepare=False)
        records = world.connection.execute("SELECT type, data FROM log_records").fetchall()
        assert records == [("order_line.create.2", {"b": 3, "op": "x"})]
        staged = world.connection.execute("SELECT type, data FROM staged_log_records").fetchall()
        assert staged == records
