"""Migrates the fleet's database.

A module of its own, imported when there is something to migrate: Alembic takes half a second to
import, and most starts find the schema up to date.
"""

import alembic.util
import psycopg
import sqlalchemy.exc

from migrations import upgrade
from rocket_rides.errors import Unavailable, in_one_line


def migrate(url: str) -> None:
    """Bring the schema up to date. Raises Unavailable if that is not possible now."""
    try:
        upgrade(url)
    except (psycopg.Error, alembic.util.CommandError) as error:
        raise Unavailable(in_one_line(error)) from None
    except sqlalchemy.exc.SQLAlchemyError as error:
        raise Unavailable(in_one_line(getattr(error, "orig", None) or error)) from None
