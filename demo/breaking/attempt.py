"""One attempt to break the fleet: what must be true first, and one attempt at a time.

Killed at any moment it leaves no consumer frozen and no lock: the kernel ends both. What was
broken by then heals all the same, only nobody says so. A total that was changed stays changed.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep

import psutil
import psycopg
import redis

from demo.breaking.compared_totals import ComparedTotals
from demo.breaking.healing import Healing
from demo.breaking.running_fleet import RunningFleet, running_fleet
from demo.breaking.target import Target
from demo.breaking.ways import WAYS, Way
from rocket_rides import database
from rocket_rides.errors import Unavailable, in_one_line
from rocket_rides.log import Log
from rocket_rides.settings import Settings

LOCK = "breaking.lock"  # a file in the data folder; not Postgres' lock, which ends with a session
TRIES, PAUSE = 10, 0.005  # seconds: a look holds the lock for a moment
# A server that hangs, as a stopped one does, must not hold up whoever wants to know.
SESSION = {"statement_timeout": "10s", "lock_timeout": "5s"}
FIRST_LOOK = "SET LOCAL statement_timeout = '10min'"


def run(
    name: str,
    config: Settings,
    say: Callable[[str], None],
    seconds: float = 5.0,
    *,
    any_server: bool = False,
    at_terminal: bool = False,
) -> None:
    """Break the fleet in the way `name`, and wait until it has healed; `say` is given each line.

    `seconds` is how long a consumer is frozen. Who asks `at_terminal` is told of make, not of
    buttons, and has a reconciliation install what it lacks, Debian's Java among it. It may take
    minutes, and works in any thread; in a daemon thread it does not hold up the end of the process.
    Raises Unavailable where nothing could be broken, or a server failed meanwhile, and NotHealed.
    """
    way = WAYS[name]
    if not any_server:
        _require_embedded(name, way, config)

    def say_plainly(line: str) -> None:
        say(type(line)("".join(letter if letter.isprintable() else " " for letter in line)))

    try:
        fleet = running_fleet(config)
        with alone(config.data_dir, name):
            _break(way, fleet, config, say_plainly, seconds, at_terminal)
    except (psycopg.Error, psutil.Error, redis.RedisError, OSError) as error:
        raise Unavailable(in_one_line(error)) from error


def _require_embedded(name: str, way: Way, config: Settings) -> None:
    given = {"DATABASE_URL": config.database_url, "REDIS_URL": config.redis_url}
    for server in way.servers:
        if given[server]:
            raise Unavailable(
                f"{name} is for the embedded servers, but {server} names another one:"
                f" make break ARGS='{name} --any-server' breaks it anyway"
            )


@contextmanager
def alone(data: Path, name: str) -> Iterator[None]:
    """Hold the lock for the block, and say in it that the way is `name`.

    Raises Unavailable if another attempt holds it.
    """
    data.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(data / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not _locks(descriptor):
            raise Unavailable("another way of breaking the fleet is under way: wait for its end")
        os.truncate(descriptor, 0)
        os.write(descriptor, name.encode())
        try:
            yield
        finally:
            os.truncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _locks(descriptor: int) -> bool:
    for _ in range(TRIES):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        sleep(PAUSE)
    return False


def under_way(data: Path) -> str:
    """The way in which somebody is breaking the fleet with this data folder; empty if nobody is.

    Also empty if that can't be determined: whoever attempts it is told why. The lock is tried only
    where a name is in it, and held for a moment, so that a look gets in no attempt's way.
    """
    with suppress(OSError), (data / LOCK).open("r+", errors="replace") as lock:
        if name := lock.read(100):
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return name
            lock.truncate(0)  # its attempt was killed
    return ""


def already_wrong(connection: psycopg.Connection, totals: ComparedTotals) -> str:
    """The names of those totals that are not exact. The first look sums all rides."""
    with connection.transaction():
        connection.execute(FIRST_LOOK)
        return ", ".join(each.name for each in totals.now() if not each.is_exact)


def _break(
    way: Way,
    fleet: RunningFleet,
    config: Settings,
    say: Callable[[str], None],
    seconds: float,
    at_terminal: bool,
) -> None:
    with (
        database.connect(config.postgres_url, "breaking", **SESSION) as connection,
        Log(config.log_url, config.stream_name) as log,
    ):
        database.require_current_schema(connection)
        healing = Healing(connection, fleet, say)
        wrong = already_wrong(connection, healing.totals)
        if wrong and way.heals and not way.repairs:
            raise Unavailable(f"the total of {wrong} is already wrong: `make reconcile` repairs it")
        way.strike(Target(config, fleet, healing, connection, log, seconds, say, at_terminal))
