"""A newer release: a copy of this project with further revisions, that runs beside ours."""

import shutil
from pathlib import Path
from typing import Self

from rocket_rides.settings import PROJECT

HIDDEN = shutil.ignore_patterns(".*")
ADDS_A_COLUMN = "ALTER TABLE rides ADD noted text"
REVISION = '''"""A revision of a newer release."""

from alembic import op

revision, down_revision = "{:04}", "{:04}"
serves_from = "{:04}"


def upgrade() -> None:
    op.execute("""{}""")
'''


def newest(tree: Path) -> int:
    return max(int(path.name[:4]) for path in tree.glob("migrations/versions/[0-9]*.py"))


class Release:
    """In a folder. Without a revision it is this release again, or what is in `tree`."""

    def __init__(self, folder: Path, tree: Path = PROJECT) -> None:
        self.folder = folder
        for package in tree.glob("*/__init__.py"):
            name = package.parent.name
            # With what is compiled: most of a process' start would be that.
            shutil.copytree(package.parent, folder / name, ignore=HIDDEN, dirs_exist_ok=True)

    def revise(self, number: int, sql: str, serves_from: int) -> Self:
        """Add a revision that runs this SQL, and follows the one before it."""
        text = REVISION.format(number, number - 1, serves_from, sql)
        return self.add(f"{number:04}_newer.py", text)

    def add(self, name: str, text: str) -> Self:
        (self.folder / "migrations/versions" / name).write_text(text)
        return self


def next_release(folder: Path) -> Path:
    """Write a copy whose schema has one more column, which this code does not miss."""
    now = newest(PROJECT)
    return Release(folder).revise(now + 1, ADDS_A_COLUMN, serves_from=now).folder
