"""Application names: what each process calls its session with Postgres, for the health check.

A session is called `streamer (starting)`, `rollup (starting)`, `consumer NAME (starting)`,
`receipts NAME (starting)` or, where a consumer is of another kind, `reader KIND NAME (starting)`
until it has completed a round of work; from then on the same without its suffix. A process that
keeps failing opens a new session with each attempt, so it always has the suffix. Nobody asks about
the other sessions of receipts and rollup, `inbox NAME` and `rollup indexer`.
"""

import hashlib
import re

import psycopg

API = "api"
STREAMER = "streamer"
ROLLUP, INDEXER = "rollup", "rollup indexer"
CONSUMER, RECEIPTS, INBOX, READER = "consumer ", "receipts ", "inbox ", "reader "
STARTING = " (starting)"

# Postgres truncates an application_name to 63 bytes and replaces each byte that is not ASCII by a
# question mark. A name that would be changed gets a hash instead; no other name contains a #.
_LASTING = re.compile(r"[ -\"$-~]{1,43}")

RENAME = "SELECT set_config('application_name', %s, false)"


def consumer(name: str) -> str:
    """The application name of the consumer `name`; no other session has it."""
    if _LASTING.fullmatch(name) and not name.endswith(STARTING):
        return CONSUMER + name
    readable = re.sub(r"[^ -\"$-~]", "?", name)[:26]
    return f"{CONSUMER}{readable}#{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def receipts(name: str) -> str:
    """The application name of the receipts' worker `name`; no other session has it."""
    return RECEIPTS + consumer(name).removeprefix(CONSUMER)


def reader(kind: str, name: str) -> str:
    """The application name of the consumer `name` of this kind; no other session has it."""
    if kind == "total":
        return consumer(name)
    return READER + consumer(f"{kind} {name}").removeprefix(CONSUMER)


def inbox(name: str) -> str:
    """The application name of that worker's other session, which reads the log."""
    return INBOX + consumer(name).removeprefix(CONSUMER)


def starting(name: str) -> str:
    """The application name of a session that has not completed any work yet."""
    return name + STARTING


def at_work(connection: psycopg.Connection) -> None:
    """Record that this session has completed a round of work. Costs a round trip the first time."""
    called = connection.info.parameter_status("application_name") or ""
    if called.endswith(STARTING):
        connection.execute(RENAME, [called.removesuffix(STARTING)], prepare=False)
