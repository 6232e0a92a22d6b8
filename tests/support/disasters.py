"""Disasters of servers, and rides that keep coming meanwhile."""

import struct
import threading

import psycopg

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


def set_redis_clock_back(world: World) -> None:
    """Make pending entries look as if Redis' clock was set back an hour after their delivery."""
    log = world.log()
    command = log.redis.execute_command
    dump = command("DUMP", log.name)  # type: ignore[no-untyped-call]
    content, version = bytearray(dump[:-10]), dump[-10:-8]
    groups = content.index(b"receipts-")
    for redis_id, _ in command("XRANGE", log.name, "-", "+"):  # type: ignore[no-untyped-call]
        milliseconds, _, sequence = redis_id.partition(b"-")
        pending = struct.pack(">QQ", int(milliseconds), int(sequence))
        if (at := content.find(pending, groups)) >= 0:
            [delivered] = struct.unpack_from("<Q", content, at + 16)
            struct.pack_into("<Q", content, at + 16, delivered + 3_600_000)
    changed = bytes(content) + version
    command("RESTORE", log.name, 0, changed + _crc64(changed), "REPLACE")  # type: ignore[no-untyped-call]


def _crc64(data: bytes) -> bytes:
    """Jones' CRC, as Redis ends a dump with."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x95AC9329AC4BC9B5 if crc & 1 else 0)
    return struct.pack("<Q", crc)


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
