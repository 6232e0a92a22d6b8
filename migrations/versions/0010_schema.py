"""The whole schema, as the SQL beside this file says and explains it."""

from pathlib import Path

from alembic import op

import migrations

revision = "0010"
down_revision = None

# The log's tables, then the application's: the kinds of records, in the order of their numbers.
SCHEMA = Path(__file__).with_suffix(".sql")
KINDS = sorted(
    (Path(migrations.__file__).parent / "kinds").glob("*.sql"),
    key=lambda file: int(file.name.split("_")[0]),
)


def upgrade() -> None:
    # Through psycopg: SQLAlchemy would prepare it, and Postgres prepares only single statements.
    for file in (SCHEMA, *KINDS):
        op.get_bind().connection.driver_connection.execute(file.read_text(), prepare=False)
