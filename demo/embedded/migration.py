"""Brings the schema of the fleet's database up to date, where it is not."""

import psycopg

from rocket_rides import database
from rocket_rides.errors import Unavailable, in_one_line


def migrate(url: str) -> None:
    """Bring the schema up to date. Raises Unavailable if that is not possible now, or Refused."""
    with database.connect(url, "servers") as connection:
        try:
            database.require_current_schema(connection)
        except Unavailable:
            pass
        else:
            return
    # Not above: Alembic takes half a second to import, and most starts find the schema up to date.
    import alembic.util
    import sqlalchemy.exc

    from migrations import upgrade

    try:
        upgrade(url)
    except (psycopg.Error, alembic.util.CommandError) as error:
        raise Unavailable(in_one_line(error)) from None
    except sqlalchemy.exc.SQLAlchemyError as error:
        raise Unavailable(in_one_line(getattr(error, "orig", None) or error)) from None
