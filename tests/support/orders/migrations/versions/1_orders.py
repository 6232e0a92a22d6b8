"""What the shop had before it had a log."""

import sqlalchemy as sa
from alembic import op

revision = "orders"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "orders",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("created_at", sa.DateTime(True), server_default=sa.func.now(), nullable=False),
        sa.Column("customer", sa.Text, nullable=False),
        sa.Column("amount", sa.Numeric(10, 2), nullable=False),
    )
