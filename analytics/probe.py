"""The probe of a store: whether it takes each version of a table's log once.

A server that ignores If-None-Match would have one run write over another's commit. Only a race
tells, and not each: delta-rs looks before it writes.
"""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

from deltalake.exceptions import DeltaError

from analytics.committing import committing, create
from analytics.store import Store
from unified_log.errors import Unavailable

RACES, RACERS = 3, 8  # on a fast server that takes a version twice, one race in ten looks fine


def require_one_winner(store: Store) -> None:
    """Raise Unavailable unless, of several who write the same version at once, one succeeds.

    What a crash leaves of a table that they create is vacuumed with other files that the log does
    not name.
    """

    def race(root: str) -> DeltaError | None:
        try:
            create(root)
        except DeltaError as error:
            return error
        return None

    with committing(store), ThreadPoolExecutor(RACERS) as pool:
        for _ in range(1 if store.is_folder else RACES):
            probe = f"probe-{uuid4().hex}"
            roots = [store.below(probe).root] * RACERS
            refused = [error for error in pool.map(race, roots) if error]
            if len(refused) == RACERS:
                raise refused[0]
            store.files.delete_dir(probe)
            if len(refused) < RACERS - 1:
                raise Unavailable(
                    f"{store.root} takes the same version of a table twice: two runs at once would"
                    " lose rides (it must refuse a second put with If-None-Match)"
                )
