"""A consumer that is frozen for a while, and what is taken from it meanwhile."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from demo.breaking.healing import LOOK_EVERY
from demo.breaking.running_fleet import RunningConsumer
from demo.breaking.target import Target, count
from rocket_rides import terms
from rocket_rides.errors import Unavailable

# Waits for the end of its standard input, which comes even if we are killed: only we hold it.
CONTINUE_LATER = 'read -r _; kill -CONT "$@"'


def freeze(target: Target) -> None:
    """Freeze a consumer for some seconds: it catches up."""
    name = target.victim.name
    target.say(f"{target.victim} is frozen for {target.seconds:g} s.")
    target.say(f"Watch it fall behind while the other consumer goes on; then {name} catches up.")
    with frozen(target.victim):
        newest = _after_some_rides(target, batches=1)
    target.say(f"{name} goes on.")
    target.healing.wait(newest)


def wipe_log(target: Target) -> None:
    """Delete the log while a consumer is behind: it heals the gap from the rides."""
    name = target.victim.name
    target.say(f"{target.victim} is frozen for {target.seconds:g} s.")
    target.say("Before it resumes, the log is deleted, with everything that it has not read.")
    target.say(f"Watch {name} report that it healed a gap.")
    with frozen(target.victim):
        # The first batch may already be in the socket from which it reads.
        newest = _after_some_rides(target, batches=2)
        entries = target.entries()
        target.log.start_anew()
        target.say(f"The log is gone, with {entries}.")
    target.say(f"{name} goes on.")
    target.healing.wait(newest)


def _after_some_rides(target: Target, batches: int) -> int:
    """Wait while the consumer is frozen; returns the newest ride afterwards.

    Raises Unavailable if fewer than `batches` batches were seen to be sent: nothing is broken then.
    """
    before, ends = target.newest_ride(), time.monotonic() + target.seconds
    sent = {terms.last_sent(target.connection)}
    while (left := ends - time.monotonic()) > 0:
        time.sleep(min(LOOK_EVERY, left))
        sent.add(terms.last_sent(target.connection))
    newest = target.newest_ride()
    missed = count(newest - before, "ride was", "rides were")
    target.say(f"Meanwhile {missed} taken.")
    if len(sent) <= batches:
        raise Unavailable(
            f"nothing was broken, because {target.victim.name} missed too few rides:"
            " is the simulator running?"
        )
    return newest


@contextmanager
def frozen(consumer: RunningConsumer) -> Iterator[None]:
    """SIGSTOP; a shell sends SIGCONT at the end of the block, or when this process is killed."""
    with subprocess.Popen(
        ["/bin/sh", "-c", CONTINUE_LATER, "sh", *consumer.pids],
        stdin=subprocess.PIPE,
        start_new_session=True,  # out of reach of Ctrl-C
    ):
        for process in consumer.processes:
            process.suspend()  # refuses if the pid was given to another process since
        yield
