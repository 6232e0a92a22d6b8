"""A newer release: a copy of this project with further revisions, whose processes run beside ours.

It stands for the next release in tests of what happens between two.
"""

import os
import shutil
import sys
from pathlib import Path

from lab.processes import start
from rocket_rides.settings import PROJECT
from tests.support.world import THE_FLEETS, Service, World

LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "docs")
REVISION = '''"""A revision of a newer release."""

from alembic import op

revision, down_revision = "{:04}", "{:04}"
serves_from = "{:04}"


def upgrade() -> None:
    op.execute("""{}""")
'''


class Newer:
    """In a folder. Without a revision it is this release again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for package in PROJECT.glob("*/__init__.py"):
            name = package.parent.name
            shutil.copytree(package.parent, folder / name, ignore=LEFT_OUT, dirs_exist_ok=True)

    def revise(self, number: int, sql: str, serves_from: int) -> "Newer":
        """Add a revision that runs this SQL, and follows the one before it."""
        return self.add(
            f"{number:04}_newer.py", REVISION.format(number, number - 1, serves_from, sql)
        )

    def add(self, name: str, text: str) -> "Newer":
        """Add a file of a revision, such as "0011_tips.py"."""
        (self.folder / "migrations/versions" / name).write_text(text)
        return self

    def service(self, world: World, module: str, *arguments: str, **environment: str) -> Service:
        """Start `python -m module` of it on a world's servers."""
        path = world.new_output(module)
        given = os.environ | THE_FLEETS | world.settings | environment
        with path.open("wb") as output:
            command = [sys.executable, "-m", module, *arguments]
            return world.started(Service(start(command, given, output, self.folder), path))

    def migrate(self, world: World) -> str:
        """Run its migrations to their end, which must be a good one; returns what they say."""
        migration = self.service(world, "migrations")
        assert migration.ends() == 0, migration.output.read_text()
        return migration.output.read_text()
