"""The whole schema, as `0010_schema.sql` beside this file says and explains it."""

from pathlib import Path

from alembic import op

revision = "0010"
down_revision = None

SCHEMA = Path(__file__).with_suffix(".sql").read_text()


def upgrade() -> None:
    # By psycopg: SQLAlchemy would prepare it, and Postgres prepares no more than one statement.
    op.get_bind().connection.driver_connection.execute(SCHEMA, prepare=False)
