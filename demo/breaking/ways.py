"""The ways to break a fleet by hand. Each says what it does, and then how the fleet copes."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import redis

from demo.breaking.healing import NotHealed, seconds_until
from demo.breaking.running_fleet import frozen
from demo.breaking.target import Target
from demo.simulator.mood import BAD_MOOD, BEGIN_BAD_MOOD
from unified_log.log import Log
from unified_log.words import count

# All but our own, without waiting for each, so that all end at the same moment.
END_SESSIONS = """
    SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND backend_type = 'client backend'
"""
ADD_A_MILLIMETRE = """
    UPDATE consumer_states SET total_distance = total_distance + 0.001 WHERE name = %s
"""


def freeze(target: Target) -> None:
    """Freeze a consumer for some seconds: it catches up."""
    target.say_what_is_frozen()
    target.say(
        f"Watch it fall behind while the other consumer goes on; then {target.name} catches up."
    )
    with frozen(target.processes):
        newest = target.rides_while_frozen()
    target.say(f"{target.name} goes on.")
    target.healing.wait(newest)


def stop_redis(target: Target) -> None:
    """Shut Redis down: it is restarted within a second, with its log."""
    target.say(f"Redis, with {target.entries()} in the log, is shut down.")
    target.say(
        "Watch the streamer and the consumers wait for it. The API takes rides all the while."
    )
    target.log.redis.shutdown(nosave=True)  # what it acknowledged is in its append-only file
    took = seconds_until(lambda: _serves(target.log))
    if took is None:
        raise NotHealed("Redis was not restarted; its supervisor should have done that")
    target.say(f"Redis serves again after {took:.1f} s, with {target.entries()}.")
    target.heal_with_the_next_ride()


def wipe_log(target: Target) -> None:
    """Delete the log while a consumer is behind: it heals the gap from the rides."""
    target.say_what_is_frozen()
    target.say("Before it resumes, the log is deleted, with everything that it has not read.")
    target.say(f"Watch {target.name} report that it healed a gap.")
    with frozen(target.processes):
        newest = target.rides_while_frozen()
        entries = target.entries()
        target.log.start_anew()
        target.say(f"The log is gone, with {entries}.")
    target.say(f"{target.name} goes on.")
    target.healing.wait(newest)


def cut_connections(target: Target) -> None:
    """Cut all connections to Postgres and Redis: everybody connects again."""
    target.say("All connections to Postgres and to Redis are cut.")
    target.say("Watch everybody connect again and go on from where Postgres says that they are.")
    ended = target.connection.execute(END_SESSIONS).fetchall()
    killed = int(target.log.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))
    target.say(
        f"Those were {count(len(ended), 'session')} of Postgres"
        f" and {count(killed, 'connection')} of Redis."
    )
    target.heal_with_the_next_ride()


def fail_receiver(target: Target) -> None:
    """Have the receiver of receipts fail for five seconds: they wait, and are delivered."""
    receiver = target.fleet.receiver()
    target.say(
        f"The receiver of receipts (process {receiver.pid}) answers 503 to everything"
        f" for {BAD_MOOD:g} s."
    )
    target.say("Watch receipts wait. Totals and minutes don't depend on them.")
    receiver.send_signal(BEGIN_BAD_MOOD)
    time.sleep(BAD_MOOD)
    newest = target.healing.newest_ride()
    target.say("The receiver works again.")
    target.healing.wait(newest)


def change_total(target: Target) -> None:
    """Add a millimetre to a total: only a reconciliation repairs it."""
    target.connection.execute(ADD_A_MILLIMETRE, [target.name])
    target.say(f"A millimetre is added to the total of {target.name}.")
    target.healing.show_totals()
    target.say("No ride is missing, so nothing heals this but a reconciliation.")
    target.say(f"`make reconcile` finds the drift, and has {target.name} reset.")


def _serves(log: Log) -> bool:
    """Whether Redis does, and has loaded its data."""
    try:
        log.length()
    except redis.RedisError:
        return False
    return True


@dataclass(frozen=True)
class Way:
    """One way, what its button says, and what is so meanwhile."""

    strike: Callable[[Target], None]
    label: str
    meanwhile: str

    @property
    def summary(self) -> str:
        return (self.strike.__doc__ or "").rstrip(".")


WAYS = {
    "freeze": Way(freeze, "Freeze a consumer", "a consumer is frozen"),
    "stop-redis": Way(stop_redis, "Stop Redis", "Redis is stopped, and restarted"),
    "wipe-log": Way(wipe_log, "Wipe the log", "a consumer is frozen, and the log is wiped"),
    "cut-connections": Way(cut_connections, "Cut all connections", "all connections are cut"),
    "fail-receiver": Way(fail_receiver, "Fail the receiver", "the receiver of receipts fails"),
    "change-total": Way(change_total, "Add a millimetre", "a total is made wrong"),
}
