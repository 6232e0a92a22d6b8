"""Where the Unix sockets of a fleet's embedded servers are, for the servers and for their clients.

They are in the data folder, as `run`, where nobody cleans up. But a socket's path has few bytes,
and not all characters; root's servers may be unable to enter the data folder; and some file systems
hold no sockets. Then they are in the folder that a system has for running programs, or at last in
/tmp, and `run` is a link that leads there. So every process of a fleet finds them, in whichever
terminal it was started.
"""

import hashlib
import os
import pwd
from contextlib import suppress
from pathlib import Path

from rocket_rides import fleet
from unified_log.errors import Refused

LONGEST_PATH = 103  # bytes, on macOS; Linux takes 107
LONGEST_NAME = "/.s.PGSQL.5432"
# To libpq and Postgres a socket's folder is one of a list.
SEPARATORS = frozenset(',"')
LAST_RESORT = Path("/tmp")  # noqa: S108 (whoever uses the folder asks for its owner)
# The folder of each user in here goes with the user's last session, but a fleet may stay; unless
# systemd keeps the user, for whom there is then a file in there.
OF_SESSIONS, LINGERING = Path("/run/user"), Path("/var/lib/systemd/linger")
# Root's, since Postgres refuses to run as root; the first that exists.
SERVERS_USERS = ("postgres", "nobody")


def in_data(data: Path) -> Path:
    return data.absolute() / "run"


def name(data: Path) -> str:
    """What this fleet, and no other, calls its folders outside of `data`, however that is named."""
    return name_of(os.path.realpath(data))


def name_of(path: str) -> str:
    """The same for a path as it is written."""
    return f"rocket-rides-{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}"


def fits(folder: Path) -> bool:
    """Whether the path of a socket in there is short enough, and is understood by all clients."""
    path = str(folder)
    # What can't be printed is not in UTF-8, for example.
    is_understood = path.isprintable() and SEPARATORS.isdisjoint(path)
    return is_understood and len(os.fsencode(path)) + len(LONGEST_NAME) <= LONGEST_PATH


def elsewhere(data: Path) -> Path:
    """Where the sockets are if they can't be in `data`.

    Once there, they stay: another terminal may have another XDG_RUNTIME_DIR, or none.
    """
    if (linked := _linked(data)) and linked.is_dir() and leads_to_its_own(data):
        return linked
    running = "/var/run" if os.geteuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(running, name(data))
    may_write = folder.is_absolute() and os.access(running, os.W_OK | os.X_OK)
    return folder if may_write and stays(running) and fits(folder) else LAST_RESORT / name(data)


def stays(running: str) -> bool:
    """Whether the folder for running programs outlives the sessions of its user."""
    if Path(running).parent != OF_SESSIONS:
        return True
    with suppress(KeyError):
        return (LINGERING / pwd.getpwuid(os.geteuid()).pw_name).exists()
    return False


def _linked(data: Path) -> Path | None:
    with suppress(OSError):
        return Path(os.readlink(in_data(data)))
    return None


def leads_to_its_own(data: Path) -> bool:
    """Whether `run` is no link, or one to this fleet's sockets: a copied one leads to another's."""
    linked = _linked(data)
    return linked is None or linked.name == name(data)


def of(data: Path) -> Path:
    """Where a client of the servers finds the sockets."""
    here = in_data(data)
    return here if fits(here) and leads_to_its_own(data) else elsewhere(data)


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


def require_trusted(folder: Path, data: Path) -> None:
    """Raise Refused if somebody else made the folder, and may listen there in a server's place."""
    try:
        owner = folder.stat().st_uid
    except OSError:  # it is not there yet; or not for us, as connecting will say
        return
    if trusts(owner):
        return
    starter = _owner(data / fleet.LOCK)
    user = servers_user()
    is_the_fleets = owner == starter or bool(user and starter == 0 and owner == user.pw_uid)
    if folder.parent == LAST_RESORT and not is_the_fleets:
        raise Refused(
            f"{folder} belongs to another user, {called(owner)}, who may listen there in a server's"
            " place: remove it first"
        )
    whose = called(starter if is_the_fleets and starter is not None else owner)
    raise Refused(
        f"the fleet on {data} is another user's, {whose}: run this as that user"
        f" ({folder} belongs to {called(owner)})"
    )


def _owner(path: Path) -> int | None:
    with suppress(OSError):
        return path.stat().st_uid
    return None


def called(user: int) -> str:
    """The user's name, or the number of one who has none."""
    with suppress(KeyError):
        return pwd.getpwuid(user).pw_name
    return str(user)
