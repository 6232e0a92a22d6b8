"""What the processes' sessions with Postgres are called: there a health check looks for them.

A session is called `streamer (starting)` or `consumer NAME (starting)` until it has done its work
once, with all that this takes; from then on `streamer` or `consumer NAME`. A process that tries
again and again, in vain, begins a new session with each attempt, and so never gets that far.
"""

import hashlib
import re
from collections.abc import Set

import psycopg

STREAMER = "streamer"
CONSUMER = "consumer "
STARTING = " (starting)"

# Postgres cuts an application_name off at 63 bytes, and has a ? for each byte that is not ASCII.
# A name that would not stay as it is gets a hash instead; no other name has the # in it.
_LASTING = re.compile(r"[ -\"$-~]{1,43}")

RENAME = "SELECT set_config('application_name', %s, false)"


def consumer(name: str) -> str:
    """What the session of the consumer `name` is called, and no other session."""
    if _LASTING.fullmatch(name) and not name.endswith(STARTING):
        return f"{CONSUMER}{name}"
    readable = re.sub(r"[^ -\"$-~]", "?", name)[:26]
    return f"{CONSUMER}{readable}#{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def starting(name: str) -> str:
    """What a session is called before it has done any work."""
    return name + STARTING


def all_are_at_work(names: Set[str]) -> bool:
    """Whether these are the sessions of a fleet that is up: nobody in it is still starting.

    A consumer that has not come as far as a session is not missed.
    """
    ours = {name for name in names if name.startswith((STREAMER, CONSUMER))}
    return (
        STREAMER in ours
        and any(name.startswith(CONSUMER) for name in ours)
        and not any(name.endswith(STARTING) for name in ours)
    )


def at_work(connection: psycopg.Connection) -> None:
    """Say that this session has done its work once. Costs a trip the first time."""
    called = connection.info.parameter_status("application_name") or ""
    if called.endswith(STARTING):
        connection.execute(RENAME, [called.removesuffix(STARTING)], prepare=False)
