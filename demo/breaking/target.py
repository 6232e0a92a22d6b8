"""The fleet to break, and what is asked of it whichever way it is broken."""

import time
from dataclasses import dataclass

import psutil
import psycopg

from demo.breaking.healing import LOOK_EVERY, Healing, Say, seconds_until
from demo.breaking.running_fleet import TOTALS, RunningFleet
from unified_log import terms
from unified_log.errors import Unavailable
from unified_log.log import Log
from unified_log.words import count

NEXT_RIDE = 5.0  # seconds that one may take to come; the simulator posts two a second


@dataclass(frozen=True)
class Target:
    """The fleet to break: its database, its log, and a consumer to be frozen for `seconds`."""

    fleet: RunningFleet
    healing: Healing
    connection: psycopg.Connection
    log: Log
    seconds: float
    say: Say

    @property
    def name(self) -> str:
        """Of the consumer to freeze."""
        return self.fleet.names(TOTALS)[-1]

    @property
    def processes(self) -> list[psutil.Process]:
        """That consumer's."""
        return [each.process for each in self.fleet.of(TOTALS) if each.name == self.name]

    def entries(self) -> str:
        """How many entries the log has, in words."""
        return count(self.log.length(), "entry")

    def say_what_is_frozen(self) -> None:
        pids = ", ".join(str(process.pid) for process in self.processes)
        self.say(f"{self.name} (process {pids}) is frozen for {self.seconds:g} s.")

    def rides_while_frozen(self) -> int:
        """Wait while the consumer is frozen; returns the newest ride afterwards.

        Raises Unavailable if the consumer may have missed nothing: the first batch that is sent
        meanwhile may already be in its socket.
        """
        before, ends = self.healing.newest_ride(), time.monotonic() + self.seconds
        sent = {terms.last_sent(self.connection)}
        while (left := ends - time.monotonic()) > 0:
            time.sleep(min(LOOK_EVERY, left))
            sent.add(terms.last_sent(self.connection))
        newest = self.healing.newest_ride()
        self.say(f"Meanwhile the API took {count(newest - before, 'ride')}.")
        if len(sent) <= 2:  # the first of them was sent before this wait
            raise Unavailable(
                f"nothing was broken, because {self.name} missed too few rides:"
                " is the simulator running?"
            )
        return newest

    def heal_with_the_next_ride(self) -> None:
        """Wait until all have coped with a ride that is taken from now on, if one comes soon.

        Raises NotHealed.
        """
        before = self.healing.newest_ride()
        if seconds_until(lambda: self.healing.newest_ride() > before, NEXT_RIDE) is None:
            self.say("No ride was taken since, so nothing had to heal yet. The next one will show.")
            self.healing.show_totals()
        else:
            self.healing.wait(self.healing.newest_ride())
