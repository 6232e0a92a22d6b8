"""Alembic's entry: applies one revision, in one transaction, one process at a time."""

import psycopg
from alembic import context
from sqlalchemy import create_engine  # noqa: TID251 (see connect)
from sqlalchemy.pool import NullPool

from migrations import step
from migrations.waiting import LOCK_TIMEOUT, naming
from rocket_rides.locks import Lock
from unified_log import database

URL, CELL = (context.config.attributes[name] for name in ("url", "cell"))


def connect() -> psycopg.Connection:
    """Connect as every process does: psycopg reads every kind of URL that libpq knows."""
    connection = database.connect(URL, "migrations", lock_timeout=LOCK_TIMEOUT)
    database.require_writable(connection)
    connection.autocommit = False  # SQLAlchemy leaves it to the driver to begin a transaction
    return connection


engine = create_engine("postgresql+psycopg://", creator=connect, poolclass=NullPool)

with engine.connect() as connection, naming(URL, connection.connection.driver_connection):
    session = connection.connection.driver_connection
    context.configure(connection=connection)
    with context.begin_transaction():
        session.execute("SELECT pg_advisory_xact_lock(%s)", [int(Lock.MIGRATION)])
        revision = context.script.get_revision(context.get_revision_argument())
        if step.begin(session, revision, CELL):
            context.run_migrations()
            step.note(session, revision)
