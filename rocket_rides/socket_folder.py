"""Where the Unix sockets of a fleet's embedded servers are, for the servers and for their clients.

They are in the data folder, as `run`, where nobody cleans up. But a socket's path has few bytes;
root's servers may be unable to enter the data folder; and some file systems hold no sockets. Then
they are in the folder that a system has for running programs, or at last in /tmp, and `run` is a
link that leads there. So every process of a fleet finds them, in whichever terminal it was started.
"""

import hashlib
import os
import pwd
from contextlib import suppress
from pathlib import Path

from rocket_rides.errors import Refused

LONGEST_PATH = 103  # bytes, on macOS; Linux takes 107
LONGEST_NAME = "/.s.PGSQL.5432"
LAST_RESORT = Path("/tmp")  # noqa: S108 (whoever uses the folder asks for its owner)
# Root's, since Postgres refuses to run as root; the first that exists.
SERVERS_USERS = ("postgres", "nobody")


def in_data(data: Path) -> Path:
    return data.absolute() / "run"


def name(data: Path) -> str:
    """What this fleet, and no other, calls its folders outside of `data`."""
    return f"rocket-rides-{hashlib.sha256(str(data.absolute()).encode()).hexdigest()[:12]}"


def fits(folder: Path) -> bool:
    """Whether the path of a socket in there is short enough."""
    return len(os.fsencode(folder)) + len(LONGEST_NAME) <= LONGEST_PATH


def elsewhere(data: Path) -> Path:
    """Where the sockets are if they can't be in `data`.

    Once there, they stay: another terminal may have another XDG_RUNTIME_DIR, or none.
    """
    with suppress(OSError):
        if (linked := Path(os.readlink(in_data(data)))).is_dir():
            return linked
    running = "/var/run" if os.geteuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(running, name(data))
    usable = folder.is_absolute() and os.access(running, os.W_OK | os.X_OK) and fits(folder)
    return folder if usable else LAST_RESORT / name(data)


def of(data: Path) -> Path:
    """Where a client of the servers finds the sockets."""
    return in_data(data) if fits(in_data(data)) else elsewhere(data)


def servers_user() -> pwd.struct_passwd | None:
    """The user that root's servers run as; None where there is none."""
    for user in SERVERS_USERS:
        with suppress(KeyError):
            return pwd.getpwnam(user)
    return None


def trusts(owner: int) -> bool:
    """Whether this process trusts a user with what it tells the servers, by the user's id.

    That is itself, root, the user of root's servers, and whoever owns this code.
    """
    trusted = {os.geteuid(), 0, Path(__file__).stat().st_uid}
    if os.geteuid() == 0 and (user := servers_user()):
        trusted.add(user.pw_uid)
    return owner in trusted


def require_trusted(folder: Path) -> None:
    """Raise Refused if somebody else made the folder, and may listen there in a server's place."""
    try:
        owner = folder.stat().st_uid
    except OSError:  # it is not there yet; or not for us, as connecting will say
        return
    if not trusts(owner):
        raise Refused(
            f"{folder} belongs to another user, {owner}: run this as that user, or remove it first"
        )
