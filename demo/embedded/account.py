"""The user that the servers run as. Postgres refuses to run as root, so root has to pick another.

That user may be unable to reach the checkout, below /root for example. No permissions outside the
project's own folders are changed; instead, the servers' files go into a folder in /var/lib. Users
other than root run the servers as themselves, and none of this applies to them.
"""

import os
import pwd
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.embedded.failures import NeverStarts
from rocket_rides.settings import Settings

PRIVATE = 0o700
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

    def reaches(self, *paths: Path) -> bool:
        """Whether the account may read all of these, and enter or run them."""
        command = ["/bin/sh", "-c", REACHES, "sh", *map(str, paths)]
        asked = subprocess.run(command, cwd="/", stderr=subprocess.DEVNULL, **self.for_subprocess)
        return asked.returncode == 0

    def home(self, data: Path) -> Path:
        """The folder for the servers' files: `data`, or one in /var/lib if `data` is out of reach.

        Once the one in /var/lib exists it stays in use: a change of permissions on a parent folder
        must not hide the data stored there. It is named after `data`, like the sockets' folder.
        """
        fallback = Path("/var/lib") / Settings.model_construct(data_dir=data).socket_dir.name
        data.mkdir(parents=True, exist_ok=True)
        if not self.is_other or (not fallback.exists() and self.reaches(data)):
            return data.resolve()
        fallback.mkdir(exist_ok=True)
        return fallback

    def make_private(self, folder: Path) -> None:
        """Create `folder` for this account alone. Raises NeverStarts if another user owns it."""
        folder.mkdir(PRIVATE, exist_ok=True)
        # In /tmp another user may have made it, even as a symbolic link. Nobody can replace ours.
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode):
            raise NeverStarts(f"{folder} is not a plain folder; remove it first")
        if found.st_uid not in (self.uid, os.geteuid()):
            raise NeverStarts(f"{folder} belongs to another user, {found.st_uid}; remove it first")
        folder.chmod(PRIVATE)
        if self.is_other:
            os.chown(folder, self.uid, self.gid)


def server_account() -> Account:
    """This process' own account; as root, an unprivileged one. Raises NeverStarts without one."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(user.pw_uid, user.pw_gid)
    raise NeverStarts("the servers can't run as root, and there is no user postgres or nobody")
