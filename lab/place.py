"""Where a drill runs: a folder of its own, and what has to end with it; and how it ends."""

import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

import psycopg

from demo.embedded.failures import NeverStarts, ServerFailed
from unified_log.errors import Unavailable

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# A drill is not played to its end.
FAILED = (ServerFailed, TimeoutError, Unavailable, psycopg.Error)


class Place:
    """A drill's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.keep = True  # the folder, in the end
        self.exits = ExitStack()  # what ends what was started, the last one first


P = TypeVar("P", bound=Place)


@contextmanager
def place(name: str, kind: Callable[[Path], P]) -> Iterator[P]:
    """That of the drill `name`, while the block lasts; then all that runs there is ended.

    SIGINT and SIGTERM end the block, too, with the status 130 or 143; and NeverStarts, with its
    reason. The folder is removed after such an end, or if the block sets `keep` to False.
    """
    # SIGINT too: a shell has the programs that it starts in the background ignore it.
    for each in SIGNALS:
        signal.signal(each, lambda number, _: sys.exit(128 + number))
    # In /tmp: paths of sockets must be short, and the servers' user must be able to enter.
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir="/tmp"))
    folder.chmod(0o755)
    found = kind(folder)
    try:
        yield found
    except NeverStarts as reason:
        found.keep = False
        raise SystemExit(str(reason)) from None
    except SystemExit:
        found.keep = False
        raise
    finally:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        found.exits.close()
        if not found.keep:
            shutil.rmtree(folder, ignore_errors=True)


def verdict(at: Place, play: Callable[[], tuple[list[str], str]], again: str = "") -> int:
    """Play a drill, which returns findings and a table; print them; returns its exit status."""
    try:
        findings, table = play()
    except FAILED as reason:
        print(f"{reason}; the logs are in {at.folder}", file=sys.stderr)
        return 1
    print(table)
    for finding in findings:
        print(f"BROKEN: {finding}")
    if findings:
        print(f"{len(findings)} findings; {again}the logs are in {at.folder}")
    at.keep = bool(findings)
    return int(at.keep)
