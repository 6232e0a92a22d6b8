"""Alembic's entry."""

from alembic import context
from orders.models import engine  # type: ignore[import-not-found]

with engine().connect() as connection:
    context.configure(connection=connection)
    with context.begin_transaction():
        context.run_migrations()
