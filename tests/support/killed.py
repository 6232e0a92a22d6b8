"""Killing a consumer within the transaction of a batch, whatever the moment."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.world import Service, World, eventually, transaction

# Its server process goes, too, as it does when the connection breaks: what the statement would have
# done must not happen later.
END_THE_WAITING = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


@contextmanager
def killed_midway(world: World, process: Service, table: str) -> Iterator[None]:
    """Kill it when it is about to write into the table, after whatever it writes before that.

    The block gives it something to write.
    """
    with transaction(world) as other:
        other.execute(f"LOCK TABLE {table} IN SHARE MODE")
        yield
        eventually(lambda: world.waiting, "a transaction that can't go on")
        process.kill()
        world.connection.execute(END_THE_WAITING)
        eventually(lambda: not world.waiting, "the end of that transaction")
