"""The tables that the API names are those of a migrated database, as far as SQLAlchemy sees them.

It sees no function, trigger, view or right, nor how full a page is: those stand in the migrations.
"""

from typing import Any

import pytest
from sqlalchemy import Connection, inspect, text

from api.tables import metadata
from tests.support.engine import connected
from tests.support.world import World


def described(connection: Connection, table: str) -> dict[str, Any]:
    """What Postgres says of a table; its expressions are as Postgres writes them."""
    look = inspect(connection)
    columns = look.get_columns(table)
    return {
        "columns": [{**column, "type": repr(column["type"])} for column in columns],
        "primary key": look.get_pk_constraint(table),
        "unique": look.get_unique_constraints(table),
        "checks": look.get_check_constraints(table),
        "foreign keys": look.get_foreign_keys(table),
    }


@pytest.mark.parametrize("table", metadata.tables)
def test_a_table_is_as_the_migrations_make_it(module_world: World, table: str) -> None:
    """Columns, types, nullability, keys, defaults, and CHECKs with their names."""
    with connected(module_world) as connection:
        migrated = described(connection, table)
        # From here on, this name is that of another table, which SQLAlchemy makes.
        connection.execute(text("CREATE SCHEMA of_the_api"))
        connection.execute(text("SET search_path = of_the_api, public"))
        metadata.tables[table].create(connection, checkfirst=False)
        assert described(connection, table) == migrated
        connection.execute(text("DROP SCHEMA of_the_api CASCADE"))
