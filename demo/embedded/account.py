"""The user that the servers run as. Postgres refuses to run as root, so root has to pick another.

That user may be unable to reach the checkout, below /root for example. No permissions outside the
project's own folders are changed; instead, the servers' files go into a folder in /var/lib. Users
other than root run the servers as themselves, and none of this applies to them.
"""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from demo.embedded.failures import NeverStarts
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
        """Whether the servers run as a different user than this process."""
        return self.uid != os.geteuid()

    def reaches(self, path: Path, wanted: int = READ | SEARCH) -> bool:
        """Whether the account has the `wanted` rights on `path` and may enter all its parents."""
        if not self.is_other:
            return True
        path = path.resolve()
        return self._may(path, wanted) and all(self._may(up, SEARCH) for up in path.parents)

    def _may(self, path: Path, wanted: int) -> bool:
        stat = path.stat()
        shift = 6 if stat.st_uid == self.uid else 3 if stat.st_gid == self.gid else 0
        return stat.st_mode >> shift & wanted == wanted

    def home(self, data: Path) -> Path:
        """The folder for the servers' files: `data`, or one in /var/lib if `data` is out of reach.

        Once the one in /var/lib exists it stays in use: a change of permissions on a parent folder
        must not hide the data stored there. It is named after `data`, like the sockets' folder.
        """
        if not self.is_other:
            return make_public(data).resolve()
        fallback = Path("/var/lib") / Settings.model_construct(data_dir=data).socket_dir.name
        if not fallback.exists() and self.reaches(make_public(data), SEARCH):
            return data.resolve()
        return make_public(fallback)

    def make_private(self, folder: Path) -> None:
        """Create `folder` for this account alone. Raises NeverStarts if another user owns it."""
        folder.mkdir(PRIVATE, exist_ok=True)
        # By descriptor, and without following symbolic links: in /tmp another user may come first.
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
    """This process' own account, or an unprivileged one if it runs as root."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(user.pw_uid, user.pw_gid)
    raise NeverStarts("the servers can't run as root, and there is no user postgres or nobody")


def make_public(folder: Path) -> Path:
    """Create `folder` and its missing parents, with mode 755 whatever the umask."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir()
        path.chmod(PUBLIC)
    return folder
