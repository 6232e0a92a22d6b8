"""The whole schema, as the SQL beside this file says and explains it."""

from pathlib import Path

from alembic import context, op

from unified_log import schema

revision, down_revision = "0010", None
serves_from = "0010"

# After the log's: the kinds of records, and what is made of them.
FILES = ("0010_rides.sql", "0010_ratings.sql", "0010_schema.sql")


def upgrade() -> None:
    # Through psycopg: SQLAlchemy would prepare it, and Postgres prepares only single statements.
    connection = op.get_bind().connection.driver_connection
    schema.apply(connection, context.config.attributes["cell"])
    for name in FILES:
        connection.execute(Path(__file__).with_name(name).read_text(), prepare=False)
