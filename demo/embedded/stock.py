"""Servers that this machine has, in place of those that come as packages.

POSTGRES_PROGRAMS and REDIS_PROGRAMS name the folders of their programs. The embedded servers are
then those, with the configuration that they have by default, apart from what a private server must
have (its folders and its socket) and what docs/running.md asks of any Redis.
"""

import os
import shutil
from pathlib import Path

from demo.embedded.account import Account, server_account
from demo.embedded.failures import NeverStarts

POSTGRES, REDIS = "POSTGRES_PROGRAMS", "REDIS_PROGRAMS"
STREAM_PROGRAMS = ("valkey-server", "redis-server")
# What a folder must have, the server first: one program of each line.
NEEDED: dict[str, list[tuple[str, ...]]] = {
    POSTGRES: [("postgres",), ("initdb",)],
    REDIS: [STREAM_PROGRAMS],
}
DEBIAN = Path("/usr/lib/postgresql")  # a folder for each major version


def named(setting: str) -> Path | None:
    """The folder that `setting` names, if it does."""
    return Path(os.environ[setting]).absolute() if os.environ.get(setting) else None


def program(setting: str, folder: Path, account: Account) -> str:
    """The server's program in the folder. Raises NeverStarts where one of its programs is not."""
    server, *_ = [_first_of(names, setting, folder, account) for names in NEEDED[setting]]
    return server


def _first_of(names: tuple[str, ...], setting: str, folder: Path, account: Account) -> str:
    for name in names:
        if shutil.which(name, path=str(folder)):
            if account.reaches(folder / name):
                return name
            raise NeverStarts(f"{setting}={folder} is refused: the servers' user can't run {name}")
    raise NeverStarts(f"{setting}={folder} is refused: there is no {' and no '.join(names)} in it")


def require() -> None:
    """Whoever starts many servers asks first. Raises NeverStarts for a setting that is no use."""
    for setting in NEEDED:
        if folder := named(setting):
            program(setting, folder, server_account())


def use() -> None:
    """Have all embedded servers be this machine's own. Settings that are there already stay.

    Raises NeverStarts where there are none.
    """
    found = {POSTGRES: _folder_of("postgres"), REDIS: _folder_of(*STREAM_PROGRAMS)}
    packages = {POSTGRES: "postgresql", REDIS: "redis-server"}
    missing = [setting for setting in found if not (named(setting) or found[setting])]
    if missing:
        raise NeverStarts(
            "this machine has no stock servers: needed is"
            f" `apt install {' '.join(packages[setting] for setting in missing)}` (Debian),"
            f" or a folder with the programs in {' and in '.join(missing)}"
        )
    for setting, folder in found.items():
        os.environ[setting] = str(named(setting) or folder)
    require()


def _folder_of(*names: str) -> Path | None:
    """The folder with the first of these programs that is there; of Postgres, the newest server."""
    versions = [path for path in DEBIAN.glob("*/bin") if path.parent.name.isdigit()]
    newest_first = sorted(versions, key=lambda path: int(path.parent.name), reverse=True)
    path = os.pathsep.join([*map(str, newest_first), *os.get_exec_path()])
    found = next(filter(None, (shutil.which(name, path=path) for name in names)), None)
    return Path(found).parent if found else None
