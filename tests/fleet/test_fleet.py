"""The whole fleet, started as a person would: every ride counts, and nothing is left behind.

Each test ends the same fleet in its own ways. The next one starts it again, on what it had then.
"""

import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import psycopg
import pytest

from tests.support.honcho import Fleet, a_fleet
from tests.support.world import PATIENCE, eventually
from unified_log.database import one_row

RIDES = 50

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


class Lasting:
    """A fleet, and the distance in metres of each ride that it was given, by the ride's id."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.rides: dict[int, Decimal] = {}

    def start(self) -> None:
        """Start it, and wait until it counts every ride that it was given before."""
        self.fleet.kill()  # whatever a test that failed has left
        self.fleet.start()
        if self.rides:
            self.keeps_every_ride()

    def post_rides(self) -> None:
        """Post rides from several clients at once."""

        def post(metres: Decimal) -> tuple[int, Decimal]:
            form = {"distance": str(metres)}
            answer = self.fleet.client.post("/rides", data=form, timeout=PATIENCE)
            assert answer.status_code == 201
            return answer.json()["ride"]["id"], metres

        with ThreadPoolExecutor(8) as clients:
            metres = (Decimal(n * 12_345 + 1).scaleb(-3) for n in range(RIDES))
            posted = dict(clients.map(post, metres))
        assert len(posted) == RIDES
        self.rides |= posted

    def keeps_every_ride(self) -> None:
        """Wait until both totals count all of these rides, and are exact."""
        with psycopg.connect(self.fleet.database, autocommit=True) as connection:
            kept = connection.execute(
                "SELECT id, distance FROM rides WHERE id = ANY(%s)", [[*self.rides]]
            )
            assert dict(kept.fetchall()) == self.rides
            eventually(
                lambda: connection.execute(EXACT_PAST, [max(self.rides)]).fetchone() == (2,),
                "two totals that are exact past the last ride",
            )

    def has_rides_of_the_simulator(self) -> None:
        """Wait until it has taken others than ours."""
        with psycopg.connect(self.fleet.database, autocommit=True) as connection:

            def taken() -> int:
                [rides] = one_row(connection.execute("SELECT count(*) FROM rides"))
                return int(rides)

            eventually(lambda: taken() > len(self.rides), "a ride of the simulator")

    def has_ended_with_honcho(self) -> None:
        """Wait for the end of honcho and of all that it has started, the servers in good order."""
        self.fleet.ends()
        # Not the end of it: a busy machine may need longer for that than the fleet has.
        log = (self.fleet.data / "postgres.log").read_text()
        assert "received smart shutdown request" in log.rpartition("ready to accept connections")[2]


# At whatever rides they stand: while the simulator posts, no two looks see the same.
EXACT_PAST = """
    SELECT count(*) FROM checkpoints JOIN consumer_states USING (kind, name)
    WHERE position >= %s
      AND total_distance = (SELECT sum(distance) FROM rides WHERE id <= position)
"""


@pytest.fixture(scope="module")
def lasting() -> Iterator[Lasting]:
    """As it is after a clone."""
    with a_fleet() as fleet:
        yield Lasting(fleet)


@on_linux
def test_the_fleet_counts_every_ride_ends_with_its_honcho_and_goes_on(lasting: Lasting) -> None:
    """Also when its terminal is closed: SIGHUP, which nothing handles, ends honcho as this does."""
    lasting.start()
    lasting.post_rides()
    lasting.keeps_every_ride()
    lasting.has_rides_of_the_simulator()
    lasting.fleet.honcho.kill()
    lasting.has_ended_with_honcho()
    lasting.start()
    ctrl_c_stops_it(lasting.fleet, "The fleet is up")


def test_ctrl_c_stops_the_fleet_in_good_order_also_while_it_starts(lasting: Lasting) -> None:
    fleet = lasting.fleet
    fleet.kill()
    fleet.spawn()
    ctrl_c_stops_it(fleet, "servers.1 started")


def ctrl_c_stops_it(fleet: Fleet, said: str) -> None:
    """Fails unless it ends in good order, once it has said this."""
    eventually(lambda: said in fleet.output.read_text(), said)
    fleet.honcho.send_signal(signal.SIGINT)
    assert fleet.honcho.wait(PATIENCE) == 128 + signal.SIGINT
    assert fleet.processes() == []
    assert (
        fleet.output.read_text()
        .partition("\n")[0]
        .endswith(f"| Postgres: embedded, in {fleet.data}")
    )
    assert "SIGKILL" not in fleet.output.read_text()
    assert "Traceback" not in fleet.output.read_text()


@on_linux
def test_a_process_whose_honcho_was_killed_before_it_could_look_ends_too(lasting: Lasting) -> None:
    fleet = lasting.fleet
    fleet.kill()
    fleet.spawn()
    eventually(lambda: "simulator.1 started" in fleet.output.read_text(), "the last process")
    fleet.honcho.kill()
    fleet.ends()
