"""The schema, through Alembic: `python -m migrations` upgrades a database to the newest one."""

from pathlib import Path

from alembic import command
from alembic.config import Config


def config(url: str) -> Config:
    """Alembic's configuration for the database at `url`; there is no ini file."""
    alembic = Config()
    alembic.set_main_option("script_location", str(Path(__file__).parent))
    alembic.attributes["url"] = url
    return alembic


def upgrade(url: str) -> None:
    """Upgrade the database. Processes that do so at once wait for one another."""
    command.upgrade(config(url), "head")
