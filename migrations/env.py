"""Alembic's entry: runs the migrations in one transaction, one process at a time."""

import psycopg
from alembic import context
from alembic.util import CommandError
from sqlalchemy import create_engine, text  # noqa: TID251 (see connect)
from sqlalchemy.pool import NullPool

from rocket_rides import revisions
from rocket_rides.locks import Lock
from unified_log import database


def connect() -> psycopg.Connection:
    """Connect as every process does: psycopg reads every kind of URL that libpq knows."""
    connection = database.connect(context.config.attributes["url"], "migrations")
    database.require_writable(connection)
    connection.autocommit = False  # SQLAlchemy leaves it to the driver to begin a transaction
    return connection


engine = create_engine("postgresql+psycopg://", creator=connect, poolclass=NullPool)

with engine.connect() as connection:
    context.configure(connection=connection)
    with context.begin_transaction():
        connection.execute(
            text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": int(Lock.MIGRATION)}
        )
        if context.get_context().get_current_heads():
            session = connection.connection.driver_connection
            found = session.execute(revisions.CURRENT_REVISION).fetchone()
            if why := revisions.no_way_from(*found):
                raise CommandError(why)
            revisions.require_cell(session, context.config.attributes["cell"])
        context.run_migrations()
