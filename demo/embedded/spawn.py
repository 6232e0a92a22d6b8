"""Starts child processes that end with their parent, and kills those that did not."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import psutil

from demo.embedded.account import Account
from demo.embedded.failures import ServerFailed
from rocket_rides.parent_death import preexec_die_with_parent

KILL_TIMEOUT = 10.0
# Any of these that runs in a server's data folder is that server, or a child of it.
SERVERS = frozenset({"postgres", "valkey-server", "redis-server"})


def spawn(
    command: list[str],
    account: Account,
    log: Path,
    orphan_signal: signal.Signals,
    *,
    session: bool,
) -> subprocess.Popen[bytes]:
    """Start `command` as `account`, with its output appended to `log`, which only we may read.

    Raises NeverStarts if the log is another user's.
    """
    with account.appending(log) as output:
        return subprocess.Popen(
            command,
            cwd=log.parent,
            env={"LC_ALL": "C", "PATH": os.defpath},  # no PGDATA, PGPORT and the like
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            umask=0o077,
            start_new_session=session,
            preexec_fn=preexec_die_with_parent(orphan_signal),
            **account.for_subprocess,
        )


def end_all(folder: Path) -> None:
    """Kill every server's process whose working directory is `folder`, until none is left.

    For a server that is dead or about to be: it starts no new children, so a scan without a result
    is final. Postgres' children have sessions of their own, and notice that they are orphans only
    when they next wait for something. Raises ServerFailed when some don't end.
    """
    deadline = time.monotonic() + KILL_TIMEOUT
    while leftovers := running(folder):
        if time.monotonic() > deadline:
            raise ServerFailed(f"processes of an earlier run in {folder} do not end: {leftovers}")
        for process in leftovers:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        time.sleep(0.01)


def running(folder: Path) -> list[psutil.Process]:
    """Every server's process whose working directory is `folder`."""
    return [
        process
        for process in psutil.process_iter(["name", "cwd"])
        if process.info["name"] in SERVERS and process.info["cwd"] == str(folder)
    ]
