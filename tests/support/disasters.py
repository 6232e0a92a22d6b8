"""Disasters of servers, and servers that refuse on purpose."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import psycopg

from tests.support.world import World, drain, take
from unified_log.database import one_row
from unified_log.streamer import checks


@contextmanager
def stopped(*processes: int) -> Iterator[None]:
    """They hang: the kernel goes on taking connections, and what is sent."""
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


def flush(world: World) -> None:
    world.log().redis.flushall()


def restart_redis(world: World) -> None:
    world.redis.stop()
    world.redis.start()


def cut_newest(world: World) -> None:
    """Restart Redis on an append-only file that lacks the newest entries."""
    world.redis.stop()
    file = world.redis.append_only_file
    content = file.read_bytes()
    assert content.count(b"XADD") > 3
    newest = content.rindex(b"XADD", 0, content.rindex(b"XADD"))
    file.write_bytes(content[: content.rindex(b"*", 0, newest)])
    world.redis.start()


def lose(world: World, *rides: int) -> Decimal:
    """Delete the entries of the cell's so manieth rides from the log; returns their metres."""
    log, ids = world.log(), [world.start + ride for ride in rides]
    for entry, record in zip(log.read("0-0", 1_000_000), world.records(), strict=True):
        if record.id in ids:
            log.redis.xdel(log.name, entry.redis_id)
    query = "SELECT coalesce(sum(distance), 0) FROM rides WHERE id = ANY(%s)"
    return Decimal(one_row(world.connection.execute(query, [ids]))[0])


def staged_too_late(world: World) -> None:
    """A session draws ids ahead, and another overtakes it: ride 2 commits when 4 was sent."""
    with psycopg.connect(world.postgres_url, autocommit=True) as ahead:
        world.connection.execute("ALTER SEQUENCE log_position CACHE 3")
        take(ahead, 10)  # draws 1, 2 and 3
        world.take(20)
        drain(world.streamer())
        take(ahead, 30)
        world.connection.execute(checks.AS_MIGRATED)


def stranded(world: World) -> None:
    """Like `staged_too_late`, and then the streamer sends another ride."""
    staged_too_late(world)
    world.take(40)
    drain(world.streamer())


def trigger(world: World, name: str, event: str, body: str) -> None:
    """Run the statements of `body`, in PL/pgSQL, for each row of an event.

    The event is one like `BEFORE INSERT ON rides`, or, at the commit, `AFTER INSERT ON rides
    DEFERRABLE INITIALLY DEFERRED`.
    """
    kind = "CONSTRAINT TRIGGER" if event.endswith("DEFERRED") else "TRIGGER"
    world.connection.execute(
        f"""
        CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$;
        CREATE {kind} {name} {event} FOR EACH ROW EXECUTE FUNCTION {name}()
        """,
        prepare=False,
    )


@contextmanager
def limited_redis(world: World, command: str) -> Iterator[str]:
    """The URL of a Redis user who may do everything but this command."""
    rights = ["on", ">secret", "~*", "+@all", f"-{command}"]
    world.log().command("ACL", "SETUSER", "limited", *rights)
    yield world.redis.url.replace("unix://", "unix://limited:secret@")
    world.log().command("ACL", "DELUSER", "limited")
