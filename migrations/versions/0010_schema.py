"""The whole schema, as the SQL beside this file says and explains it."""

from pathlib import Path

from alembic import context, op

import migrations
from unified_log import schema

revision = "0010"
down_revision = None

# After the log's: the kinds of records in the order of their numbers, and what is made of them.
APPLICATION = Path(__file__).with_suffix(".sql")
KINDS = sorted(
    (Path(migrations.__file__).parent / "kinds").glob("*.sql"),
    key=lambda file: int(file.name.split("_")[0]),
)


def upgrade() -> None:
    # Through psycopg: SQLAlchemy would prepare it, and Postgres prepares only single statements.
    connection = op.get_bind().connection.driver_connection
    schema.apply(connection, context.config.attributes["cell"])
    for file in (*KINDS, APPLICATION):
        connection.execute(file.read_text(), prepare=False)
