"""The schema, through Alembic: `python -m migrations` upgrades a database to the newest one."""

from pathlib import Path

from alembic import command
from alembic.config import Config


def config(url: str, cell: int | None = None) -> Config:
    """Alembic's configuration for the database at `url`; there is no ini file."""
    alembic = Config()
    folder = str(Path(__file__).parent).replace("%", "%%")  # as in an ini file
    alembic.set_main_option("script_location", folder)
    alembic.attributes.update(url=url, cell=cell)
    return alembic


def upgrade(url: str, cell: int | None = None) -> None:
    """Upgrade the database. Processes that do so at once wait for one another.

    A database without the schema becomes that cell, or cell 0. Raises Refused if it is another one,
    Unavailable, or an error of Alembic's, SQLAlchemy's or psycopg's.
    """
    command.upgrade(config(url, cell), "head")
