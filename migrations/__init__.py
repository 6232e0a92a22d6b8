"""The schema, through Alembic: `python -m migrations` upgrades a database to the newest one.

Revisions are applied one by one, each in a transaction. A lock is waited for only so long that
those who come behind go on; then the transaction is rolled back, and tried again a little later.
"""

import logging
import random
import time
from collections.abc import Callable
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from migrations.waiting import InTheWay, Reasons

logger = logging.getLogger("migrations")

PAUSE = 0.5, 1.5  # seconds between two attempts, at random


def config(url: str, cell: int | None = None) -> Config:
    """Alembic's configuration for the database at `url`; there is no ini file."""
    alembic = Config()
    folder = str(Path(__file__).parent).replace("%", "%%")  # as in an ini file
    alembic.set_main_option("script_location", folder)
    alembic.attributes.update(url=url, cell=cell)
    return alembic


def upgrade(
    url: str, cell: int | None = None, wait: Callable[[float], object] = time.sleep
) -> None:
    """Upgrade the database, however long others are in the way; the log says who.

    A database without the schema becomes that cell, or cell 0. Raises Refused if it is another one,
    Unavailable, an error of Alembic's, SQLAlchemy's or psycopg's, or what `wait` raises, which is
    called with the seconds until the next attempt.
    """
    alembic = config(url, cell)
    revisions = ScriptDirectory.from_config(alembic).walk_revisions()
    for revision in reversed([each.revision for each in revisions]):
        says = Reasons(logger, revision)
        while True:
            try:
                command.upgrade(alembic, revision)
                break
            except InTheWay as who:
                says(str(who))
                wait(random.uniform(*PAUSE))
