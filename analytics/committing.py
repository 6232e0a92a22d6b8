"""How delta-rs writes the table's log for us: each version once, and refusals in one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema
from deltalake.exceptions import DeltaError

from analytics import parquet
from analytics.store import OPTIONS, Store, refusal
from unified_log.errors import Unavailable
from unified_log.words import printable

SCHEMA = Schema.from_arrow(parquet.schema())
# By default, whoever comes too late to create a table changes the one that is there by then.
ONCE = CommitProperties(max_commit_retries=0)
# A checkpoint replaces what came before it, so it must not follow a commit that may yet be lost.
ONLY_COMMIT = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


def create(root: str, **properties: Any) -> DeltaTable:
    """A table of rides without any. Raises DeltaError if there is one, also by then."""
    return DeltaTable.create(
        root, SCHEMA, storage_options=OPTIONS, commit_properties=ONCE, **properties
    )


@contextmanager
def committing(store: Store) -> Iterator[None]:
    """Raise Unavailable in place of what delta-rs raises. Raises OSError, too."""
    try:
        with store.telling():
            yield
    except DeltaError as error:
        raise Unavailable(f"{store.root} can't be written to: {reason(error)}") from None


def reason(error: DeltaError) -> str:
    """What it says, without the trace that follows; it may quote what somebody else wrote."""
    return printable(refusal(error))
