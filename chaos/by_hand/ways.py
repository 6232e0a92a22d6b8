"""The ways to break a fleet by hand. Each says what it does, and then how the fleet coped."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import psycopg
import redis

from chaos.by_hand.compared_totals import LOOK_EVERY, ComparedTotals, seconds_until
from chaos.by_hand.running_consumers import RunningConsumer, frozen
from rocket_rides import terms
from rocket_rides.errors import Unavailable
from rocket_rides.log import Log

PATIENCE = 30.0  # seconds
ADD_A_MILLIMETRE = """
    UPDATE consumer_states SET total_distance = total_distance + 0.001 WHERE name = %s
"""


class NotHealed(Exception):
    """The fleet did not heal in time; the message says what is missing."""


@dataclass(frozen=True)
class Target:
    """The fleet to break: a consumer, to be frozen for `seconds`, its database and its log."""

    victim: RunningConsumer
    totals: ComparedTotals
    connection: psycopg.Connection
    log: Log
    seconds: float


def freeze(target: Target) -> None:
    """Freeze a consumer for some seconds: it catches up."""
    name = target.victim.name
    show(f"{target.victim} is frozen for {target.seconds:g} s.")
    show(f"Watch its lines stop while the other consumer goes on; then {name} catches up.")
    with frozen(target.victim):
        newest = _after_some_rides(target, batches=1)
    _await_exact_totals(target, newest)


def stop_redis(target: Target) -> None:
    """Shut Redis down: it is restarted within a second, with its log."""
    entries, life = target.log.length(), _life(target.log)
    show(f"Redis, with {entries:,} entries in the log, is shut down.")
    show("Watch the streamer and the consumers wait for it. The API takes rides all the while.")
    target.log.redis.shutdown(nosave=True)  # what it acknowledged is in its append-only file
    took = seconds_until(lambda: _life(target.log) not in ("", life), PATIENCE)
    if took is None:
        raise NotHealed("Redis was not restarted; its supervisor should have done that")
    show(f"Redis serves again after {took:.1f} s, with {target.log.length():,} entries.")
    _await_exact_totals(target, target.totals.newest_ride())


def wipe_log(target: Target) -> None:
    """Delete the log while a consumer is behind: it heals the gap from the rides."""
    name = target.victim.name
    show(f"{target.victim} is frozen for {target.seconds:g} s. Before it")
    show("resumes, the log is deleted, with everything that it has not read.")
    show(f"Watch {name} report that it healed a gap.")
    with frozen(target.victim):
        # The first batch may already be in the socket from which it reads.
        newest = _after_some_rides(target, batches=2)
        entries = target.log.length()
        target.log.start_anew()
    show(f"The log is gone, with {entries:,} entries.")
    _await_exact_totals(target, newest)


def change_total(target: Target) -> None:
    """Add a millimetre to a total: only a reconciliation notices and repairs it."""
    name = target.victim.name
    show(f"A millimetre is added to the total of {name}.")
    target.connection.execute(ADD_A_MILLIMETRE, [name])
    show(target.totals.table())
    show("No ride is missing, so nothing heals this. Now run `make reconcile` (it installs Spark")
    show(f"if need be): it finds the drift and has {name} reset, which GET /consumers then shows.")


@dataclass(frozen=True)
class Way:
    """One way, the setting of the server that it breaks, and whether the fleet heals by itself."""

    take: Callable[[Target], None]
    server: str = ""
    heals: bool = True

    @property
    def summary(self) -> str:
        return (self.take.__doc__ or "").rstrip(".")


WAYS = {
    "freeze": Way(freeze),
    "stop-redis": Way(stop_redis, "REDIS_URL"),
    "wipe-log": Way(wipe_log, "REDIS_URL"),
    "change-total": Way(change_total, "DATABASE_URL", heals=False),
}


def show(line: str) -> None:
    print(line, flush=True)  # noqa: T201


def _after_some_rides(target: Target, batches: int) -> int:
    """Wait while the consumer is frozen; returns the newest ride afterwards.

    Raises Unavailable if fewer than `batches` batches were seen to be sent: nothing is broken then.
    """
    before, ends = target.totals.newest_ride(), time.monotonic() + target.seconds
    sent = {terms.last_sent(target.connection)}
    while (left := ends - time.monotonic()) > 0:
        time.sleep(min(LOOK_EVERY, left))
        sent.add(terms.last_sent(target.connection))
    newest = target.totals.newest_ride()
    show(f"Meanwhile {newest - before} ride{'s were' if newest != before + 1 else ' was'} taken.")
    if len(sent) <= batches:
        raise Unavailable(
            f"nothing was broken, because {target.victim.name} missed too few rides:"
            " is the simulator running?"
        )
    return newest


def _await_exact_totals(target: Target, upto: int) -> None:
    took = target.totals.wait_until_exact(upto, PATIENCE)
    show(target.totals.table())
    if took is None:
        raise NotHealed(f"not all totals are exact at ride {upto} after {PATIENCE:.0f} s")
    show(f"Healed: {took:.1f} s later all have counted ride {upto}, with exact totals.")


def _life(log: Log) -> str:
    """Redis' run id, new after each start; empty while Redis can't be reached."""
    try:
        info: bytes = log.redis.execute_command("INFO", "server")  # type: ignore[no-untyped-call]
    except redis.RedisError:
        return ""
    return next((line for line in info.decode().split() if line.startswith("run_id:")), "")
