"""The user that the servers run as. Postgres refuses to run as root, so root has to pick another.

That user may be unable to reach the checkout, below /root for example. No permissions outside the
project's own folders are changed; instead, the servers' files go into a folder in /var/lib. Users
other than root run the servers as themselves, and none of this applies to them. No start hides data
that exists: where it is out of reach, or in both folders, root is told so.

What root is about to change or to write into is opened once, never through a symbolic link, and
then asked whose it is: between a look at a name and its use, another user may swap what it names.
"""

import errno
import os
import pwd
import shlex
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.embedded.failures import NeverStarts
from rocket_rides import socket_folder

PRIVATE, PRIVATE_FILE = 0o700, 0o600
FALLBACKS = Path("/var/lib")
DATA = "postgres", "redis"  # the servers' data folders
IS_PLAIN = {"folder": stat.S_ISDIR, "file": stat.S_ISREG}
# Asked of the kernel, as that user.
REACHES = 'for each; do test -r "$each" -a -x "$each" || exit 1; done'


@dataclass(frozen=True)
class Account:
    """The user and group that the servers run as."""

    uid: int
    gid: int

    @property
    def is_other(self) -> bool:
        """Whether the servers run as a different user than this process."""
        return self.uid != os.geteuid()

    @property
    def for_subprocess(self) -> dict[str, Any]:
        """What has `subprocess` start a program as this user."""
        who = {"user": self.uid, "group": self.gid, "extra_groups": []}
        return who if self.is_other else {}

    def require_name(self) -> None:
        """Raise NeverStarts unless the system knows the account by a name, as Postgres demands."""
        try:
            pwd.getpwuid(self.uid)
        except KeyError:
            raise NeverStarts(
                f"the embedded Postgres can't run as user {self.uid}, who has no name here (no line"
                " in /etc/passwd): run the fleet as a user who has one, or set DATABASE_URL to a"
                " server of your own"
            ) from None

    def reaches(self, *paths: Path) -> bool:
        """Whether the account may read all of these, and enter or run them."""
        command = ["/bin/sh", "-c", REACHES, "sh", *map(str, paths)]
        asked = subprocess.run(command, cwd="/", stderr=subprocess.DEVNULL, **self.for_subprocess)
        return asked.returncode == 0

    def home(self, data: Path) -> Path:
        """The folder for the servers' files: `data`, or one in /var/lib if `data` is out of reach.

        Once the one in /var/lib exists it stays in use: a change of permissions on a parent folder
        must not hide the data stored there; an empty one hides nothing. Raises NeverStarts as
        `require_trusted` does, and where there is data in both, or in `data`, out of reach.
        """
        data = (
            data.absolute()
        )  # `reaches` is asked of where it is: `..` leads through other folders
        data.mkdir(parents=True, exist_ok=True)
        require_trusted(data)
        if not self.is_other:
            return data.resolve()
        fallback = _fallback(data)
        if is_here := has_data(data):
            self._require_the_only(data, fallback)
        if is_here or (not fallback.exists() and self.reaches(data.resolve())):
            return data.resolve()
        fallback.mkdir(exist_ok=True)
        require_trusted(fallback)
        return fallback

    def _require_the_only(self, data: Path, fallback: Path) -> None:
        if has_data(fallback):
            raise NeverStarts(
                f"there is data both in {data} and in {fallback}, and only one can be used: keep"
                f" both, but move the {' and '.join(DATA)} of the one that is not wanted elsewhere"
            )
        if not self.reaches(data.resolve()):
            raise NeverStarts(
                f"there is data in {data}, which user {socket_folder.called(self.uid)} can't reach,"
                " as whom the servers run: let that user enter the folder and those above it"
            )

    def make_private(self, folder: Path) -> None:
        """Create `folder` for this account alone. Raises NeverStarts if another user owns it."""
        with suppress(FileExistsError):
            folder.mkdir(PRIVATE)
        with self._opened(folder, os.O_RDONLY | os.O_DIRECTORY, "folder") as descriptor:
            os.fchmod(descriptor, PRIVATE)
            if self.is_other:
                os.fchown(descriptor, self.uid, self.gid)

    @contextmanager
    def appending(self, file: Path) -> Iterator[int]:
        """A descriptor that appends to `file`, which is made its owner's alone.

        Raises NeverStarts if it is another user's, or no plain file.
        """
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
        with self._opened(file, flags, "file") as descriptor:
            os.fchmod(descriptor, PRIVATE_FILE)
            os.set_blocking(descriptor, True)
            yield descriptor

    @contextmanager
    def _opened(self, path: Path, flags: int, kind: str) -> Iterator[int]:
        try:
            descriptor = os.open(path, flags | os.O_NOFOLLOW, PRIVATE_FILE)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO):
                raise NeverStarts(f"{path} is not a plain {kind}; remove it first") from None
            raise
        try:
            found = os.fstat(descriptor)
            if not IS_PLAIN[kind](found.st_mode):
                raise NeverStarts(f"{path} is not a plain {kind}; remove it first")
            if found.st_uid not in (self.uid, os.geteuid()):
                raise NeverStarts(
                    f"{path} belongs to another user, {found.st_uid}{self._way_out(path)}"
                )
            yield descriptor
        finally:
            os.close(descriptor)

    def _way_out(self, path: Path) -> str:
        if path.name not in DATA:
            return "; remove it first"
        chown = f"chown -R {self.uid}:{self.gid} {shlex.quote(str(path))}"
        return f": `{chown}` keeps it; or run the fleet as its owner"


def has_data(folder: Path) -> bool:
    """Whether a server has made its data folder in there."""
    return any((folder / name).exists() for name in DATA)


def _fallback(data: Path) -> Path:
    """The folder in /var/lib: one that was named after the path as it was given stays in use."""
    given = FALLBACKS / socket_folder.name_of(str(data))
    return given if given.exists() else FALLBACKS / socket_folder.name(data)


def require_trusted(folder: Path) -> None:
    """Raise NeverStarts if somebody else owns the folder, who may replace whatever is in it."""
    owner = folder.stat().st_uid
    if not socket_folder.trusts(owner):
        keep = f"`chown {os.geteuid()} {shlex.quote(str(folder))}` by root keeps what is in it"
        raise NeverStarts(
            f"{folder} belongs to another user, {owner}, who may replace what is in it: {keep}, if"
            " you trust that; or run the fleet as its owner, or set another DATA_DIR"
        )


def server_account() -> Account:
    """This process' own account; as root, an unprivileged one. Raises NeverStarts without one."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    if user := socket_folder.servers_user():
        return Account(user.pw_uid, user.pw_gid)
    raise NeverStarts("the servers can't run as root, and there is no user postgres or nobody")
