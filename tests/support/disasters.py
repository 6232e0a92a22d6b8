"""Disasters of servers, servers that refuse on purpose, and rides that keep coming meanwhile."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import psycopg

from rocket_rides.database import one_row
from streamer import checks
from tests.support.world import World, drain, eventually, take


def flush(world: World) -> None:
    world.log().redis.flushall()


def restart_redis(world: World) -> None:
    world.redis.stop()
    world.redis.start()


def crash_redis(world: World) -> None:
    world.redis.kill()
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


def restart_postgres(world: World) -> None:
    world.postgres.stop()
    world.postgres.start()


def crash_postgres(world: World) -> None:
    world.postgres.kill()
    world.postgres.start()


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


class Rides:
    """Takes two rides every few milliseconds, until told to end; waits for a lost database."""

    def __init__(self, world: World) -> None:
        self.url = world.postgres_url
        self.taken = 0
        self.end = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        while not self.end.is_set():
            try:
                with psycopg.connect(self.url) as connection:
                    while not self.end.wait(0.003):
                        take(connection, "0.001", 7)
                        connection.commit()
                        self.taken += 2
            except psycopg.OperationalError:
                self.end.wait(0.05)

    def flow(self, rides: int) -> None:
        """Wait until so many more rides have been taken."""
        enough = self.taken + rides
        eventually(lambda: self.taken >= enough, "more rides")

    def stop(self) -> None:
        self.end.set()
        self.thread.join()
