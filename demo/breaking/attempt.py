"""One attempt to break the fleet, and what must be true first.

Killed at any moment it leaves no consumer frozen. What was broken by then heals all the same, only
nobody says so. A total that was changed stays changed.
"""

import psutil
import psycopg
import redis

from demo.breaking.healing import Healing, Say
from demo.breaking.running_fleet import running_fleet
from demo.breaking.target import Target
from demo.breaking.ways import WAYS
from rocket_rides import revisions
from rocket_rides.settings import Settings
from unified_log import database
from unified_log.errors import Unavailable, in_one_line
from unified_log.log import Log

# A server that hangs must not hold up the user for long; but adding up all rides takes a while.
SESSION = {"statement_timeout": "2min", "lock_timeout": "5s"}


def run(name: str, config: Settings, say: Say, seconds: float = 5.0) -> None:
    """Break the fleet in the way `name`, and wait until it has healed; `say` is given each line.

    `seconds` is how long a consumer is frozen. A call may take minutes, in any thread; in a daemon
    thread it does not hold up the end of the process. Raises Unavailable where nothing could be
    broken, or a server failed meanwhile, and NotHealed.
    """
    if not (config.embedded_postgres and config.embedded_redis):
        raise Unavailable(
            "only a fleet on the embedded servers is broken on purpose, but DATABASE_URL or"
            " REDIS_URL names another one"
        )
    try:
        fleet = running_fleet(config)
        with (
            database.connect(config.postgres_url, "breaking", **SESSION) as connection,
            Log(config.log_url, config.stream_name) as log,
        ):
            revisions.require_schema(connection, config.cell)
            healing = Healing(connection, fleet, say)
            wrong = ", ".join(each.name for each in healing.totals() if not each.is_exact)
            if wrong:  # nobody could tell whether the totals have healed
                raise Unavailable(
                    f"the total of {wrong} is already wrong: `make reconcile` repairs it"
                )
            WAYS[name].strike(Target(fleet, healing, connection, log, seconds, say))
    except (psycopg.Error, psutil.Error, redis.RedisError, OSError) as error:
        raise Unavailable(in_one_line(error)) from error
