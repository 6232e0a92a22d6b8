"""Application names: what each process calls its session with Postgres, for a health check.

A session is called `streamer (starting)` or `reader KIND NAME (starting)` until it has completed a
round of work; from then on the same without its suffix. A process that keeps failing opens a new
session with each attempt, so it always has the suffix.

With that, it takes a shared advisory lock, which nobody waits for: it says on which host, or in
which container, the process runs.
"""

import hashlib
import re
import socket
import zlib

import psycopg

STREAMER = "streamer"
READER = "reader "
STARTING = " (starting)"

# Postgres truncates an application_name to 63 bytes and replaces each byte that is not ASCII by a
# question mark. A name that would be changed gets a hash instead; no other name contains a #.
_LASTING = re.compile(r"[ -\"$-~]{1,43}")

RENAME = "SELECT set_config('application_name', %s, false)"
# Two numbers are another lock than any of one number (`unified_log.locks`).
PLACES = 7268
RENAME_HERE = f"{RENAME}, pg_try_advisory_lock_shared({PLACES}, %s)"


def lasting(name: str) -> str:
    """A name that Postgres does not change, after a prefix of up to nine bytes; one for each."""
    if _LASTING.fullmatch(name) and not name.endswith(STARTING):
        return name
    readable = re.sub(r"[^ -\"$-~]", "?", name)[:26]
    return f"{readable}#{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def reader(kind: str, name: str) -> str:
    """The application name of the reader `name` of this kind; no other session has it."""
    return READER + lasting(f"{kind} {name}")


def starting(name: str) -> str:
    """The application name of a session that has not completed any work yet."""
    return name + STARTING


def place(host: str = "") -> int:
    """The number of a host, by default this one, among the locks that say where sessions are."""
    return zlib.crc32((host or socket.gethostname()).encode()) >> 1  # an integer and an oid


def renaming(name: str, host: str = "") -> tuple[str, list[object]]:
    """The statement, and its values, by which a session is called so, and where its process is."""
    return RENAME_HERE, [name, place(host)]


def at_work(connection: psycopg.Connection) -> None:
    """Record that this session has completed a round of work. Costs a round trip the first time."""
    called = connection.info.parameter_status("application_name") or ""
    if called.endswith(STARTING):
        connection.execute(*renaming(called.removesuffix(STARTING)), prepare=False)
