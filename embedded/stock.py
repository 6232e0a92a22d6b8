"""Servers that this machine has, in place of those that come as packages.

POSTGRES_PROGRAMS and REDIS_PROGRAMS name the folders of their programs. The embedded servers are
then those, with the configuration that they have by default, apart from what a private server must
have (its folders and its socket) and what docs/running.md asks of any Redis.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from embedded.account import Account
from embedded.failures import NeverStarts

POSTGRES, REDIS = "POSTGRES_PROGRAMS", "REDIS_PROGRAMS"
STREAM_PROGRAMS = ("valkey-server", "redis-server")
DEBIAN = Path("/usr/lib/postgresql")  # a folder for each major version


def named(setting: str) -> Path | None:
    """The folder that `setting` names, if it does."""
    return Path(os.environ[setting]).absolute() if os.environ.get(setting) else None


def program(setting: str, folder: Path, names: Sequence[str], account: Account) -> str:
    """The first of these programs that is there. Raises NeverStarts."""
    for name in names:
        if (folder / name).is_file():
            if account.reaches(folder / name):
                return name
            raise NeverStarts(f"{setting}={folder} is refused: the servers' user can't run {name}")
    raise NeverStarts(f"{setting}={folder} is refused: there is no {' and no '.join(names)} in it")


def use() -> None:
    """Have all embedded servers be this machine's own. Settings that are there already stay.

    Raises NeverStarts where there are none.
    """
    found = {POSTGRES: _postgres(), REDIS: _folder_of(STREAM_PROGRAMS)}
    missing = [setting for setting in found if not (named(setting) or found[setting])]
    if missing:
        raise NeverStarts(
            "PostgreSQL and Redis are needed (Debian: apt install postgresql redis-server);"
            f" or let {' and '.join(missing)} name the folders with their programs"
        )
    for setting, folder in found.items():
        os.environ[setting] = str(named(setting) or folder)


def _postgres() -> Path | None:
    """The newest one."""
    versions = [path for path in DEBIAN.glob("*/bin") if path.parent.name.isdigit()]
    newest = max(versions, key=lambda path: int(path.parent.name), default=None)
    return newest or _folder_of(["postgres"])


def _folder_of(names: Sequence[str]) -> Path | None:
    found = next(filter(None, map(shutil.which, names)), None)
    return Path(found).parent if found else None
