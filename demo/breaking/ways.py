"""The ways to break a fleet by hand. Each says what it does, and then how the fleet copes."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import redis

from demo.breaking import reconciliation
from demo.breaking.healing import LOOK_EVERY, PATIENCE, NotHealed, seconds_until
from demo.breaking.running_fleet import frozen
from demo.breaking.saying import count
from demo.breaking.target import Target
from demo.simulator.mood import BAD_MOOD, BEGIN_BAD_MOOD, IN_A_BAD_MOOD
from rocket_rides import sessions
from rocket_rides.database import one_row
from rocket_rides.errors import Unavailable
from rocket_rides.log import Log

# All but our own, without waiting for each, so that all end at the same moment.
END_SESSIONS = """
    SELECT pid, application_name, pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND backend_type = 'client backend'
"""
NEW_SESSIONS = """
    SELECT application_name FROM pg_stat_activity
    WHERE datname = current_database() AND NOT pid = ANY(%s)
"""
SERVICES = (sessions.STREAMER, sessions.ROLLUP, sessions.CONSUMER, sessions.RECEIPTS)
# Of the rides that were taken since. It refuses some with a 503 at any time, for another reason.
REFUSED = """
    SELECT count(*) FROM receipts
    WHERE ride_id > %s AND outcome IS NULL AND reason = %s
"""
REASON = f"status 503: {IN_A_BAD_MOOD}"
ADD_A_MILLIMETRE = """
    UPDATE consumer_states SET total_distance = total_distance + 0.001 WHERE name = %s
"""


def freeze(target: Target) -> None:
    """Freeze a consumer for some seconds: it catches up."""
    name = target.victim.name
    target.say(f"{target.victim} is frozen for {target.seconds:g} s.")
    target.say(f"Watch it fall behind while the other consumer goes on; then {name} catches up.")
    with frozen(target.victim):
        newest = target.rides_while_frozen(batches=1)
    target.say(f"{name} goes on.")
    target.healing.wait(newest)


def stop_redis(target: Target) -> None:
    """Shut Redis down: it is restarted within a second, with its log."""
    entries, life = target.entries(), _life(target.log)
    target.say(f"Redis, with {entries} in the log, is shut down.")
    target.say(
        "Watch the streamer and the consumers wait for it. The API takes rides all the while."
    )
    target.log.redis.shutdown(nosave=True)  # what it acknowledged is in its append-only file
    took = seconds_until(lambda: _life(target.log) not in ("", life))
    if took is None:
        raise NotHealed("Redis was not restarted; its supervisor should have done that")
    target.say(f"Redis serves again after {took:.1f} s, with {target.entries()}.")
    target.heal_with_the_next_ride()


def wipe_log(target: Target) -> None:
    """Delete the log while a consumer is behind: it heals the gap from the rides."""
    name = target.victim.name
    target.say(f"{target.victim} is frozen for {target.seconds:g} s.")
    target.say("Before it resumes, the log is deleted, with everything that it has not read.")
    target.say(f"Watch {name} report that it healed a gap.")
    with frozen(target.victim):
        # The first batch may already be in the socket from which it reads.
        newest = target.rides_while_frozen(batches=2)
        entries = target.entries()
        target.log.start_anew()
        target.say(f"The log is gone, with {entries}.")
    target.say(f"{name} goes on.")
    target.healing.wait(newest)


def cut_connections(target: Target) -> None:
    """Cut all connections to Postgres and Redis: everybody connects again."""
    target.say("All connections to Postgres and to Redis are cut.")
    target.say("Watch everybody connect again and go on from where Postgres says that they are.")
    ended = target.connection.execute(END_SESSIONS).fetchall()
    killed = int(target.log.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))
    cut = count(len(ended), "session", "sessions"), count(killed, "connection", "connections")
    target.say(f"Those were {cut[0]} of Postgres and {cut[1]} of Redis.")
    pids = [pid for pid, _, _ in ended]
    at_work = {name for _, name, _ in ended if name.startswith(SERVICES)}

    def away() -> set[str]:
        return at_work - {name for (name,) in target.connection.execute(NEW_SESSIONS, [pids])}

    took = seconds_until(lambda: not away())
    if took is None:
        names = ", ".join(sorted(away()))
        raise NotHealed(f"after {PATIENCE:.0f} s these are not back at work: {names}")
    target.say(f"All services are connected again, and at work, after {took:.1f} s.")
    target.heal_with_the_next_ride()


def fail_receiver(target: Target) -> None:
    """Have the receiver of receipts fail for five seconds: they wait, and are delivered."""
    receiver = target.fleet.receiver(target.config.receiver_url)
    target.say(
        f"The receiver of receipts (process {receiver.pid}) answers 503 to everything"
        f" for {BAD_MOOD:g} s."
    )
    target.say("Watch receipts wait. Totals and minutes don't depend on them.")
    before = target.healing.newest_ride()
    receiver.send_signal(BEGIN_BAD_MOOD)
    ends = time.monotonic() + BAD_MOOD
    refused = 0
    while (left := ends - time.monotonic()) > 0:
        time.sleep(min(LOOK_EVERY, left))
        refused = max(refused, *one_row(target.connection.execute(REFUSED, [before, REASON])))
    newest = target.healing.newest_ride()
    if not refused:
        raise Unavailable(
            "nothing was broken, because no receipt was refused: is the simulator posting rides?"
        )
    waiting = count(refused, "refused receipt waits", "refused receipts wait")
    target.say(f"The receiver works again; {waiting}.")
    target.healing.wait(newest)


def change_total(target: Target) -> None:
    """Add a millimetre to a total: only a reconciliation notices and repairs it."""
    _add_a_millimetre(target)
    target.say("No ride is missing, so nothing heals this but a reconciliation.")
    target.say(f"`make reconcile` finds the drift, and has {target.victim.name} reset.")
    target.say("`make break ARGS=reconcile` runs it too, and waits until the total is right.")


def reconcile(target: Target) -> None:
    """Add a millimetre to a total, unless one is wrong already, and reconcile."""
    reconciliation.require_installed()
    if all(each.is_exact for each in target.healing.totals()):
        _add_a_millimetre(target)
        target.say("No ride is missing, so only a reconciliation notices this.")
    else:
        target.say("A total is wrong already:")
        target.healing.show_totals()
    target.say("Now a reconciliation runs, as by `make reconcile`.")
    target.say("That takes half a minute, or minutes.")
    try:
        reconciliation.run(target.say)
    except Unavailable as reason:
        raise NotHealed(f"{reason}. The total stays wrong until `make reconcile` works") from None
    target.healing.wait(target.healing.newest_ride())


def _life(log: Log) -> str:
    """Redis' run id, new after each start; empty while it does not serve, or loads its data."""
    try:
        log.length()
        info: bytes = log.command("INFO", "server")
    except redis.RedisError:
        return ""
    return next((line for line in info.decode().split() if line.startswith("run_id:")), "")


def _add_a_millimetre(target: Target) -> None:
    target.connection.execute(ADD_A_MILLIMETRE, [target.victim.name])
    target.say(f"A millimetre is added to the total of {target.victim.name}.")
    target.healing.show_totals()


@dataclass(frozen=True)
class Way:
    """One way, what its button says, and what is so meanwhile."""

    strike: Callable[[Target], None]
    label: str
    meanwhile: str
    takes_wrong_totals: bool = False  # others could not tell whether the totals have healed

    @property
    def summary(self) -> str:
        return (self.strike.__doc__ or "").rstrip(".")


WAYS = {
    "freeze": Way(freeze, "Freeze a consumer", "a consumer is frozen"),
    "stop-redis": Way(stop_redis, "Stop Redis", "Redis is stopped, and restarted"),
    "wipe-log": Way(wipe_log, "Wipe the log", "a consumer is frozen, and the log is wiped"),
    "cut-connections": Way(cut_connections, "Cut all connections", "all connections are cut"),
    "fail-receiver": Way(fail_receiver, "Fail the receiver", "the receiver of receipts fails"),
    "change-total": Way(
        change_total, "Add a millimetre", "a total is made wrong", takes_wrong_totals=True
    ),
    "reconcile": Way(
        reconcile,
        "Add a millimetre, reconcile",
        "a total is wrong, and a reconciliation runs",
        takes_wrong_totals=True,
    ),
}
