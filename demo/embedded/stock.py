"""Servers that this machine has, in place of those that come as packages.

POSTGRES_PROGRAMS and REDIS_PROGRAMS name the folders of their programs. The embedded servers are
then those, with the configuration that they have by default, apart from what a private server must
have (its folders and its socket) and what docs/production.md asks of any Redis.
"""

import os
import shutil
from pathlib import Path

from demo.embedded.failures import NeverStarts

POSTGRES, REDIS = "POSTGRES_PROGRAMS", "REDIS_PROGRAMS"
# What the server's program may be called.
SERVERS = {POSTGRES: ("postgres",), REDIS: ("valkey-server", "redis-server")}


def named(setting: str) -> Path | None:
    """The folder that `setting` names, if it does."""
    return Path(os.environ[setting]).absolute() if os.environ.get(setting) else None


def program(setting: str, folder: Path) -> str:
    """The server's program in the folder. Raises NeverStarts where there is none."""
    names = SERVERS[setting]
    for name in names:
        if shutil.which(name, path=str(folder)):
            return name
    raise NeverStarts(f"{setting}={folder} is refused: there is no {' and no '.join(names)} in it")


def require() -> None:
    """Raise NeverStarts if a setting names a folder without its program. Ask before any starts."""
    for setting in SERVERS:
        if folder := named(setting):
            program(setting, folder)
