"""The whole schema, as the SQL beside this file says and explains it."""

from pathlib import Path

from alembic import op

revision = "0010"
down_revision = None

FOLDER = Path(__file__).parent
# The log's tables, then the application's.
SCHEMA = [(FOLDER / name).read_text() for name in ("0010_schema.sql", "rides.sql")]


def upgrade() -> None:
    # Through psycopg: SQLAlchemy would prepare it, and Postgres prepares only single statements.
    for statements in SCHEMA:
        op.get_bind().connection.driver_connection.execute(statements, prepare=False)
