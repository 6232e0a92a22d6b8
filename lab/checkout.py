"""Copies of the project's files: those of the working tree, or of a commit."""

import shutil
import subprocess
from pathlib import Path

LISTED = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")


def copy(project: Path, folder: Path) -> None:
    """Copy what `git clone` would bring, as it is now, and what is not yet in git.

    Raises subprocess.CalledProcessError, or OSError where there is no git.
    """
    for name in filter(None, subprocess.check_output(LISTED, cwd=project).decode().split("\0")):
        if (project / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(project / name, folder / name)


def export(project: Path, commit: str, folder: Path) -> None:
    """Write the files of a commit. Raises as `copy` does."""
    folder.mkdir(parents=True)
    archived = subprocess.check_output(["git", "archive", commit], cwd=project)  # noqa: S607
    subprocess.run(["tar", "--extract"], input=archived, cwd=folder, check=True)  # noqa: S607
