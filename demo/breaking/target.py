"""The fleet to break, and what is asked of it whichever way it is broken."""

from collections.abc import Callable
from dataclasses import dataclass

import psycopg

from demo.breaking.healing import Healing, seconds_until
from demo.breaking.running_fleet import RunningConsumer, RunningFleet
from rocket_rides.log import Log
from rocket_rides.settings import Settings

NEXT_RIDE = 5.0  # seconds that one may take to come; the simulator posts two a second


@dataclass(frozen=True)
class Target:
    """The fleet to break: its database, its log, and a consumer to be frozen for `seconds`."""

    config: Settings
    fleet: RunningFleet
    healing: Healing
    connection: psycopg.Connection
    log: Log
    seconds: float
    say: Callable[[str], None]
    at_terminal: bool

    @property
    def victim(self) -> RunningConsumer:
        return self.fleet.victim

    def newest_ride(self) -> int:
        return self.healing.totals.newest_ride()

    def heal_with_the_next_ride(self) -> None:
        """Wait until all have coped with a ride that is taken from now on, if one is soon.

        Raises NotHealed.
        """
        before = self.newest_ride()
        if seconds_until(lambda: self.newest_ride() > before, NEXT_RIDE) is None:
            self.say("No ride was taken since, so nothing had to heal yet. The next one will show.")
            self.healing.show_totals()
        else:
            self.healing.wait(self.newest_ride())

    def entries(self) -> str:
        """How many entries the log has, in words."""
        return count(self.log.length(), "entry", "entries")


def count(number: int, one: str, many: str) -> str:
    """A number of things, in words."""
    return f"{number:,} {one if number == 1 else many}"
