"""A steady load on a consumer group: one producer with an open-loop schedule, and its members.

The producer sends each message at the time at which it is due, however late the ones before it
were; a message carries that time, and its latency counts from it. So a stall delays what was due
meanwhile, in the figures as in life. All processes share the machine's monotonic clock.
"""

import multiprocessing
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import NamedTuple

import psutil

from rocket_rides import groups
from rocket_rides.groups import Group
from rocket_rides.log import Log

STREAM, GROUP = "group-load", "members"
COUNT = 10_000  # entries that a read may give, as in the seed's measurement
WAIT = 0.2  # seconds that a member's read waits
LEAD = 0.2  # seconds from the members' start to the first message
DRAIN = 10.0  # seconds that members have for what is left when the schedule is over
SECOND = 1_000_000_000  # nanoseconds


class Load(NamedTuple):
    """`rate` is in messages per second; `pending` entries are pending before it begins."""

    rate: float
    seconds: float
    members: int
    pending: int = 0


class Outcome(NamedTuple):
    """What came of a load. Times are in nanoseconds, processor time in seconds."""

    latencies: array  # type: ignore[type-arg]  # of all messages that were received, sorted
    sent: int
    sending: float  # seconds
    received_in_time: int  # while the producer was sending
    unread: int  # when the producer had sent its last message
    pending: int  # in addition to those before, likewise
    left: int  # neither received nor acknowledged DRAIN seconds later
    processor: dict[str, float]


def run(url: str, load: Load, folder: Path) -> Outcome:
    """Put the load on a new stream, whose members are processes of their own."""
    with Log(url, STREAM) as log:
        log.start_anew()
        Group(log, GROUP, "hoarder").make()
        _hoard(log, load.pending)
        with _members(url, load.members, folder) as (over, processes):
            server = psutil.Process(int(_info(log)["process_id"]))
            before = _processor(server, processes)
            started = time.monotonic()
            sent = _produce(log, load)
            ended = time.monotonic()
            [position] = groups.positions(log)
            unread = log.length() - _given(log)
            processor = {
                who: spent - before[who] for who, spent in _processor(server, processes).items()
            }
            over.set()
        latencies, received_in_time = _received(folder, load.members, ended)
        [position_after] = groups.positions(log)
        return Outcome(
            latencies,
            sent,
            ended - started - LEAD,
            received_in_time,
            unread,
            position.pending - load.pending,
            max(sent - len(latencies), position_after.pending - load.pending),
            processor,
        )


def _hoard(log: Log, pending: int) -> None:
    """Leave entries pending for ever under the name of a member that never comes back."""
    hoarder = Group(log, GROUP, "hoarder")
    while pending > 0:
        with log.redis.pipeline(transaction=False) as pipeline:
            add: Callable[..., object] = pipeline.execute_command
            for _ in range(min(pending, COUNT)):
                add("XADD", STREAM, "*", "due", "0")
            pipeline.execute()
        pending -= len(hoarder.read(COUNT))


def _produce(log: Log, load: Load) -> int:
    """Send each message when it is due, or as soon after it as possible; returns how many."""
    total = int(load.rate * load.seconds)
    start = time.monotonic_ns() + int(LEAD * SECOND)
    due = [start + int(number * SECOND / load.rate) for number in range(total)]
    sent = 0
    while sent < total:
        now = time.monotonic_ns()
        if now < due[sent]:
            time.sleep((due[sent] - now) / SECOND)
            continue
        with log.redis.pipeline(transaction=False) as pipeline:
            add: Callable[..., object] = pipeline.execute_command
            while sent < total and due[sent] <= now:
                add("XADD", STREAM, "*", "due", due[sent])
                sent += 1
            pipeline.execute()
    return sent


@contextmanager
def _members(url: str, number: int, folder: Path) -> Iterator[tuple[Event, list[psutil.Process]]]:
    context = multiprocessing.get_context("fork")
    over = context.Event()
    processes = [
        context.Process(target=_member, args=(url, f"member{n}", folder / f"member{n}", over))
        for n in range(number)
    ]
    for process in processes:
        process.start()
    try:
        yield over, [psutil.Process(process.pid) for process in processes]
        for process in processes:
            process.join(DRAIN + 5)
    finally:
        for process in processes:
            process.kill()


def _member(url: str, name: str, file: Path, over: Event) -> None:
    """Read, note how long each message took, acknowledge; until all is read, or DRAIN is over."""
    noted = array("q")  # pairs: when it was received, and its latency
    last = None
    with Log(url, STREAM) as log:
        group = Group(log, GROUP, name)
        while last is None or time.monotonic() < last:
            batch = group.read(COUNT, WAIT)
            now = time.monotonic_ns()
            for entry in batch:
                noted.append(now)
                noted.append(now - int(entry.fields[1]))
            group.ack([entry.redis_id for entry in batch])
            if over.is_set():
                last = last or time.monotonic() + DRAIN
                if not batch:
                    break
    with file.open("wb") as output:
        noted.tofile(output)


def _received(folder: Path, members: int, ended: float) -> tuple["array[int]", int]:
    """All latencies, sorted; and how many messages were received before `ended`."""
    latencies: array[int] = array("q")
    in_time = 0
    for number in range(members):
        noted: array[int] = array("q", (folder / f"member{number}").read_bytes())
        in_time += sum(at <= ended * SECOND for at in noted[::2])
        latencies.extend(noted[1::2])
    return array("q", sorted(latencies)), in_time


def _given(log: Log) -> int:
    """How many messages were given to a member."""
    reply = log.command("XINFO", "GROUPS", STREAM)[0]
    facts = dict(zip(reply[::2], reply[1::2], strict=True))
    return int(facts[b"entries-read"])


def _processor(server: psutil.Process, members: list[psutil.Process]) -> dict[str, float]:
    def spent(process: psutil.Process) -> float:
        times = process.cpu_times()
        return float(times.user + times.system)

    return {
        "server": spent(server),
        "members": sum(map(spent, members)),
        "producer": spent(psutil.Process()),
    }


def _info(log: Log) -> dict[str, str]:
    lines = log.command("INFO", "server").decode().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)
