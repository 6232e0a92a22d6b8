"""Copies of the project whose schema has one more revision, as its next release would."""

import shutil
from pathlib import Path

from rocket_rides.settings import PROJECT

# Without the environment, the demo's data, and what is compiled from the original.
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__")
ADDS_A_COLUMN = "ALTER TABLE rides ADD noted text"
REVISION = '''"""A revision that stands for the next release's."""

from alembic import op

revision, down_revision = "{revision}", "{after}"
serves_from = "{serves_from}"


def upgrade() -> None:
    op.execute("{statement}")
'''


def copy(folder: Path, tree: Path = PROJECT) -> None:
    """Copy a source tree, as it is now."""
    shutil.copytree(tree, folder, ignore=LEFT_OUT)


def newest(tree: Path) -> str:
    """The newest revision of a tree's schema."""
    return max(path.name[:4] for path in tree.glob("migrations/versions/[0-9]*.py"))


def add_revision(tree: Path, statement: str, serves_from: str) -> None:
    """Give a tree one more revision; code older than `serves_from` can't run on it."""
    after = newest(tree)
    revision = f"{int(after) + 1:04}"
    (tree / f"migrations/versions/{revision}_noted.py").write_text(
        REVISION.format(
            revision=revision, after=after, serves_from=serves_from, statement=statement
        )
    )


def next_release(folder: Path) -> None:
    """Write a copy that adds a nullable column; its schema still serves this code."""
    copy(folder)
    add_revision(folder, ADDS_A_COLUMN, newest(PROJECT))
