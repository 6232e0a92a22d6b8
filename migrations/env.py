"""Alembic's entry: runs the migrations in one transaction, one process at a time."""

import psycopg
from alembic import context
from alembic.util import CommandError
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from migrations.models import Base
from rocket_rides import database
from rocket_rides.locks import Lock

# psycopg connects by itself: it reads every kind of URL that libpq knows.
engine = create_engine(
    "postgresql+psycopg://",
    creator=lambda: psycopg.connect(
        context.config.attributes["url"], connect_timeout=5, **database.CONNECTION
    ),
    poolclass=NullPool,
)

with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=Base.metadata)
    with context.begin_transaction():
        connection.execute(text(f"SELECT pg_advisory_xact_lock({Lock.MIGRATION:d})"))
        for revision in context.get_context().get_current_heads():
            if database.is_newer(revision):
                raise CommandError(database.NEWER.format(revision))
        context.run_migrations()
