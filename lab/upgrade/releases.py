"""The three releases that a drill runs: the last one, the next, and one that takes away.

The last release is the newest that CHANGELOG.md names with its commit. Where a revision of the
schema was changed since, its database can't be upgraded, and the working tree stands for it; then,
and as long as there is no newer revision, the next release is the working tree with a revision that
adds a column. The third one adds a revision that the last release can't run on.
"""

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from lab import checkout
from rocket_rides.settings import PROJECT

RELEASE = re.compile(r"^## \[(?P<version>\d[^]]*)\].*\n+Commit (?P<commit>[0-9a-f]{7,40})\.", re.M)
# What a released revision is made of.
FROZEN = ("migrations/versions", "unified_log/schema/*.sql")
REVISION = '''"""{meaning}"""

from alembic import op

revision = "{revision}"
down_revision = "{after}"


def upgrade() -> None:
    op.execute("""{statements}""")
'''
ADDS = "ALTER TABLE rides ADD drilled text"


class Releases(NamedTuple):
    """A source tree of each, and what the first one is."""

    last: Path
    next: Path
    later: Path
    said: str


def named_in(changelog: str) -> tuple[str, str] | None:
    """The version and the commit of the newest release that is named with its commit."""
    found = RELEASE.search(changelog)
    return (found["version"], found["commit"]) if found else None


def made(folder: Path, commit: str | None = None) -> Releases:
    """Write the trees into `folder`; `commit` stands for the last release.

    Raises subprocess.CalledProcessError, or OSError where there is no git.
    """
    last, following, later = (folder / name for name in ("last", "next", "later"))
    release = named_in((PROJECT / "CHANGELOG.md").read_text())
    said = f"commit {commit}"
    if commit is None and release and not changed_since(release[1]):
        commit, said = release[1], f"release {release[0]}"
    if commit:
        checkout.export(PROJECT, commit, last)
    else:
        checkout.copy(PROJECT, last)
        said = "this code, for no release has a schema that can be upgraded"
    checkout.copy(PROJECT, following)
    if newest(following) == newest(last):
        add_revision(following, "Adds a column.", ADDS)
    shutil.copytree(following, later)
    add_revision(later, "Takes away what only the last release uses.", "")
    return Releases(last, following, later, said)


def changed_since(commit: str) -> bool:
    """Whether a revision of the schema was changed or removed since that commit."""
    compare = ["git", "diff", "--name-only", "--no-renames", "--diff-filter=MD", commit, "--"]
    return bool(subprocess.check_output([*compare, *FROZEN], cwd=PROJECT))


def newest(tree: Path) -> str:
    return max(path.name[:4] for path in tree.glob("migrations/versions/[0-9]*.py"))


def add_revision(tree: Path, meaning: str, statements: str) -> None:
    """Give the tree one more revision of the schema."""
    after = newest(tree)
    revision = f"{int(after) + 1:04}"
    path = tree / f"migrations/versions/{revision}_drilled.py"
    path.write_text(
        REVISION.format(meaning=meaning, revision=revision, after=after, statements=statements)
    )
