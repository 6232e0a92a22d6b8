"""A server that ends, and connections that do."""

import redis

from demo.breaking.healing import PATIENCE, NotHealed, seconds_until
from demo.breaking.target import Target, count
from rocket_rides.database import one_row
from rocket_rides.errors import Unavailable
from rocket_rides.log import Log

# All but our own, and how many are hidden: of roles whose sessions ours may not end. Without
# waiting for each, so that all end at the same moment.
END_SESSIONS = """
    SELECT coalesce(array_agg(pid) FILTER (WHERE
               CASE backend_type WHEN 'client backend' THEN pg_terminate_backend(pid) END), '{}'),
           count(*) FILTER (WHERE backend_type IS NULL)
    FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
SESSIONS = """
    SELECT application_name FROM pg_stat_activity
    WHERE datname = current_database() AND NOT pid = ANY(%s)
"""


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


def cut_connections(target: Target) -> None:
    """Cut all connections to Postgres and Redis: everybody connects again."""
    target.say("All connections to Postgres and to Redis are cut.")
    target.say("Watch everybody connect again and go on from where Postgres says that they are.")
    ended, spared = one_row(target.connection.execute(END_SESSIONS))
    killed = int(target.log.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))
    cut = count(len(ended), "session", "sessions"), count(killed, "connection", "connections")
    target.say(f"Those were {cut[0]} of Postgres and {cut[1]} of Redis.")
    if spared:
        target.say(f"{count(spared, 'session', 'sessions')} of other roles of Postgres went on.")
    if not ended:
        raise Unavailable("nothing was broken, because nobody was connected to Postgres")
    took = seconds_until(lambda: not _away(target, ended))
    if took is None:
        names = ", ".join(sorted(_away(target, ended)))
        raise NotHealed(f"after {PATIENCE:.0f} s these are not back at work: {names}")
    target.say(f"All services are connected again, and at work, after {took:.1f} s.")
    target.heal_with_the_next_ride()


def _life(log: Log) -> str:
    """Redis' run id, new after each start; empty while it does not serve, or loads its data."""
    try:
        log.length()
        info: bytes = log.command("INFO", "server")
    except redis.RedisError:
        return ""
    return next((line for line in info.decode().split() if line.startswith("run_id:")), "")


def _away(target: Target, ended: list[int]) -> frozenset[str]:
    """Those of the fleet's services that have no session at work, but those that were `ended`."""
    names = target.connection.execute(SESSIONS, [ended])
    return target.fleet.sessions - {name for (name,) in names}
