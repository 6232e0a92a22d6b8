"""Periods that are closed."""

from pathlib import Path

from alembic import op

revision, down_revision = "0011", "0010"
serves_from = "0010"


def upgrade() -> None:
    session = op.get_bind().connection.driver_connection
    session.execute(Path(__file__).with_suffix(".sql").read_text(), prepare=False)
