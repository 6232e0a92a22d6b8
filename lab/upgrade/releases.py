"""The three releases that a drill runs: the last one, the next, and one that takes away.

The last release is the newest that CHANGELOG.md names with its commit, or the commit from which the
newest one upgrades. Where a revision of the schema was changed since, the working tree stands for
it; then, and while there is no newer revision, the next release is the working tree with a revision
that adds a column. The third one adds a revision that the last release can't run on.
"""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from lab import newer
from rocket_rides.settings import PROJECT

RELEASE = re.compile(
    r"^## \[(?P<version>\d[^]]*)\].*\n+(?P<of>Commit|Upgrades from commit)"
    r" (?P<commit>[0-9a-f]{7,40})\b",
    re.MULTILINE,
)
# What a released revision is made of.
FROZEN = ("migrations/versions", "unified_log/schema/*.sql")
TAKES_AWAY = "SELECT"  # nothing that the code between would miss


class Releases(NamedTuple):
    last: Path
    next: Path
    later: Path
    said: str  # what the first one is


def named_in(changelog: str) -> tuple[str, str] | None:
    """What the newest release that is named with a commit says of it, and the commit."""
    found = RELEASE.search(changelog)
    if not found:
        return None
    own = found["of"] == "Commit"
    said = f"release {found['version']}" if own else f"what {found['version']} upgrades from"
    return said, found["commit"]


def made(folder: Path, commit: str | None = None) -> Releases:
    """Write the trees; `commit` stands for the last release. Raises OSError where git has none."""
    last, following, later = (folder / name for name in ("last", "next", "later"))
    release = named_in((PROJECT / "CHANGELOG.md").read_text())
    said = f"commit {commit}"
    if commit is None and release and not changed_since(release[1]):
        said, commit = release
    if commit:
        export(commit, last)
    else:
        newer.Release(last)
        said = "this code, since no release's schema can be upgraded"
    was, upgraded = newer.newest(last), newer.Release(following)
    if newer.newest(following) == was:
        upgraded.revise(was + 1, newer.ADDS_A_COLUMN, serves_from=was)
    now = newer.newest(following)
    newer.Release(later, following).revise(now + 1, TAKES_AWAY, serves_from=now)
    return Releases(last, following, later, said)


def changed_since(commit: str) -> bool:
    """Whether a revision of the schema was changed or removed since that commit."""
    compare = ("diff", "--name-only", "--no-renames", "--diff-filter=MD", commit, "--")
    return bool(git(*compare, *FROZEN))


def export(commit: str, folder: Path) -> None:
    folder.mkdir()
    subprocess.run(["tar", "--extract"], input=git("archive", commit), cwd=folder, check=True)  # noqa: S607


def git(*words: str) -> bytes:
    """What git prints. Raises OSError with the first line of what it complains of."""
    done = subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, check=False)  # noqa: S607
    if done.returncode:
        [said, *_] = done.stderr.decode(errors="replace").splitlines() or ["git fails"]
        raise OSError(said)
    return done.stdout
