"""Postgres refuses to run as root, so root starts the servers as another user: this is that user.

An unprivileged user cannot get into a checkout below /root, for example. No permission outside the
project's own folders is changed for that: what the user cannot reach is kept in a folder of its own
in /var/lib. Whoever is not root runs the servers as themselves, and none of this matters.
"""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from embedded.failures import NeverStarts
from rocket_rides.settings import Settings

READ = 4
SEARCH = 1  # for a file: execute
PRIVATE = 0o700
PUBLIC = 0o755


@dataclass(frozen=True)
class Account:
    """The user and group that the servers run as."""

    uid: int
    gid: int

    @property
    def is_other(self) -> bool:
        """Whether the servers run as somebody else than this process."""
        return self.uid != os.geteuid()

    def reaches(self, path: Path, wanted: int = READ | SEARCH) -> bool:
        """Whether the account has the `wanted` rights on `path` and may pass all its parents."""
        if not self.is_other:
            return True
        path = path.resolve()
        return self._may(path, wanted) and all(self._may(up, SEARCH) for up in path.parents)

    def _may(self, path: Path, wanted: int) -> bool:
        found = path.stat()
        shift = 6 if found.st_uid == self.uid else 3 if found.st_gid == self.gid else 0
        return found.st_mode >> shift & wanted == wanted

    def home(self, data: Path) -> Path:
        """The folder for the servers' files: `data`, or one in /var/lib where it is out of reach.

        Once there is one in /var/lib it stays the home: a parent folder whose permissions change
        must not hide what was stored. Named after `data` like the sockets' folder is.
        """
        if not self.is_other:
            return make_public(data).resolve()
        fallback = Path("/var/lib") / Settings.model_construct(data_dir=data).socket_dir.name
        if not fallback.exists() and self.reaches(make_public(data), SEARCH):
            return data.resolve()
        return make_public(fallback)

    def make_private(self, folder: Path) -> None:
        """Make `folder` for this account alone. Raises NeverStarts when somebody else has it."""
        folder.mkdir(PRIVATE, exist_ok=True)
        # By descriptor, and through no symbolic link: in /tmp anyone may have been here first.
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError as error:
            raise NeverStarts(f"{folder} is not ours: {error.strerror}; remove it first") from None
        try:
            owner = os.fstat(descriptor).st_uid
            if owner not in (self.uid, os.geteuid()):
                raise NeverStarts(f"{folder} belongs to another user, {owner}; remove it first")
            os.fchmod(descriptor, PRIVATE)
            if self.is_other:
                os.fchown(descriptor, self.uid, self.gid)
        finally:
            os.close(descriptor)


def server_account() -> Account:
    """This process' own account; for root an unprivileged one."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(found.pw_uid, found.pw_gid)
    raise NeverStarts("the servers do not run as root, and there is no user postgres or nobody")


def make_public(folder: Path) -> Path:
    """Make `folder` and its missing parents, passable whatever the umask; leave others alone."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir()
        path.chmod(PUBLIC)
    return folder
