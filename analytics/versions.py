"""What the versions of the table's log say: what each run wrote into its own, and who else wrote.

`DeltaTable.history` finds nothing in a folder whose name has a # or a ?; this does.
"""

import re
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from analytics.ledger import Owner
from analytics.store import Store
from unified_log.words import printable

LOG = "_delta_log"
VERSION = re.compile(r"_delta_log/([0-9]{20})\.json")


class CommittedRun(msgspec.Struct, frozen=True):
    """What a run writes into its commit, which added the rides past `after`."""

    after: int
    run: int  # the commit's number among ours
    position: int  # everything up to here is in the table
    ledger: str  # the SHA-256 of the ledger's file, which is named after it
    owners: list[Owner]  # as in that ledger


class CommitInfo(msgspec.Struct):
    """What the writer of a version said of it; `reconciliation` if that was a run."""

    operation: str = ""
    timestamp: int = 0  # milliseconds since 1970
    reconciliation: CommittedRun | None = None


class FileAction(msgspec.Struct, rename="camel"):
    """A file that a version adds or removes."""

    data_change: bool = True


class Action(msgspec.Struct, rename="camel"):
    """A line of the log, as far as it matters here."""

    commit_info: CommitInfo | None = None
    add: FileAction | None = None
    remove: FileAction | None = None


def committed_runs(store: Store) -> Iterator[CommittedRun]:
    """What the runs wrote, the newest first, as far back as the log goes."""
    return (run for _, run in commits(store))


def commits(store: Store) -> Iterator[tuple[int, CommittedRun]]:
    """The same, with when they committed: in milliseconds since 1970."""
    for _, actions in _versions(store):
        for action in actions or ():
            if action.commit_info and action.commit_info.reconciliation:
                yield action.commit_info.timestamp, action.commit_info.reconciliation


def strangers(store: Store) -> list[str]:
    """The versions since the newest run's that changed rides, each with what it did.

    One that can't be read may have changed some.
    """
    found = list[str]()
    for version, actions in _versions(store):
        if actions is None:
            found.append(f"version {version} (unreadable)")
            continue
        said = [action.commit_info for action in actions if action.commit_info]
        if any(info.reconciliation for info in said):
            break
        files = [file for action in actions for file in (action.add, action.remove) if file]
        if any(file.data_change for file in files):
            operation = printable(said[0].operation) if said else "unnamed"
            found.append(f"version {version} ({operation})")
    return found[::-1]


def _versions(store: Store) -> Iterator[tuple[int, list[Action] | None]]:
    """The versions, the newest first, each with its actions: None if they can't be read."""
    for info in reversed(store.listed(LOG)):
        if not (version := VERSION.fullmatch(info.path)):
            continue
        actions = None
        with suppress(FileNotFoundError, ValueError, ArithmeticError):
            lines = store.read(info.path).splitlines()
            actions = [msgspec.json.decode(line, type=Action) for line in lines]
        yield int(version[1]), actions
