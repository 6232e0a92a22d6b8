"""The whole fleet, started as a person would: every ride counts, and nothing is left behind.

Most of these tests end one fleet, each in its own way, and start it again on what it had then.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import psutil
import psycopg
import pytest

from lab.ports import free_ports
from rocket_rides.database import one_row
from tests.support.honcho import Fleet, a_fleet, has_a_full_pipe
from tests.support.world import PATIENCE, eventually

RIDES = 50
# All of the Procfile but the simulator, whose rides nobody has added up.
WITHOUT_SIMULATOR = ("servers", "api", "streamer", "consumer0", "consumer1")
MOST_POSTS = 40  # times RIDES, that fill a pipe
STOP_TIMEOUT = 10

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

# The distance of each ride in metres, by its id.
Rides = dict[int, Decimal]


@pytest.fixture(scope="module")
def lasting() -> Iterator[Fleet]:
    """As it is after a clone. It keeps what it has, whatever its tests do to it."""
    with a_fleet() as fleet:
        yield fleet


@pytest.fixture
def fleet(lasting: Fleet) -> Fleet:
    """With all of the Procfile."""
    return running(lasting)


@pytest.fixture
def small_fleet(lasting: Fleet) -> Fleet:
    """Without the simulator."""
    return running(lasting, *WITHOUT_SIMULATOR)


def running(fleet: Fleet, *processes: str) -> Fleet:
    """With these processes: started, unless the test before has left it like that."""
    if not fleet.lives or fleet.started != processes:
        fleet.kill()
        fleet.start(*processes)
    return fleet


@pytest.fixture
def new_fleet() -> Iterator[Fleet]:
    """As it is after a clone."""
    with a_fleet() as fleet:
        yield fleet


def post_rides(fleet: Fleet, count: int = RIDES) -> Rides:
    """Post rides from several clients at once."""

    def post(metres: Decimal) -> tuple[int, Decimal]:
        answer = fleet.client.post("/rides", data={"distance": str(metres)}, timeout=PATIENCE)
        assert answer.status_code == 201
        return answer.json()["ride"]["id"], metres

    with ThreadPoolExecutor(8) as clients:
        rides = list(clients.map(post, (Decimal(n * 12_345 + 1).scaleb(-3) for n in range(count))))
    assert len(dict(rides)) == count
    return dict(rides)


# At whatever rides they stand: while the simulator posts, no two looks see the same.
EXACT_PAST = """
    SELECT count(*) FROM checkpoints JOIN consumer_states USING (kind, name)
    WHERE last_ride_id >= %s
      AND total_distance = (SELECT sum(distance) FROM rides WHERE id <= last_ride_id)
"""


def keeps(fleet: Fleet, rides: Rides) -> None:
    """Wait until both totals count these rides, and are exact."""
    last = max(rides)
    with psycopg.connect(fleet.database, autocommit=True) as connection:
        kept = connection.execute("SELECT id, distance FROM rides WHERE id = ANY(%s)", [[*rides]])
        assert dict(kept.fetchall()) == rides
        eventually(
            lambda: connection.execute(EXACT_PAST, [last]).fetchone() == (2,),
            f"two totals that are exact past ride {last}",
        )


def test_the_whole_procfile_counts_every_ride_beside_the_simulators(fleet: Fleet) -> None:
    eventually(lambda: fleet.standings().get("consumer0", (0,))[0] > 0, "a ride of the simulator")
    rides = post_rides(fleet)
    keeps(fleet, rides)
    with psycopg.connect(fleet.database) as connection:
        [taken] = one_row(connection.execute("SELECT count(*) FROM rides"))
    assert taken > len(rides)
    assert "reconciling every day" in fleet.output.read_text()


def kill(fleet: Fleet) -> None:
    fleet.honcho.kill()


def kill_while_it_hangs(fleet: Fleet) -> None:
    """Its forks then hold more output than fits the pipe to it."""
    fleet.honcho.send_signal(signal.SIGSTOP)
    for _ in range(MOST_POSTS):
        is_full = has_a_full_pipe(fleet.honcho.pid)
        are_counted(fleet, post_rides(fleet))
        if is_full:
            break
    assert is_full
    fleet.honcho.kill()


def are_counted(fleet: Fleet, rides: Rides) -> None:
    """Wait until both consumers have counted these rides, and said so."""
    eventually(lambda: min(ride for ride, _ in fleet.standings().values()) >= max(rides))


def hang_up(fleet: Fleet) -> None:
    fleet.honcho.send_signal(signal.SIGHUP)


def ended_with_honcho(fleet: Fleet) -> None:
    """Wait for the end of honcho, and of all that it has started, its servers in good order."""
    fleet.honcho.wait(PATIENCE)
    fleet.ends(STOP_TIMEOUT)
    # Not the end of it: a busy machine may need longer for that than the fleet has.
    log = (fleet.data / "postgres.log").read_text()
    assert "received smart shutdown request" in log.rpartition("ready to accept connections")[2]


@on_linux
@pytest.mark.parametrize("end", [kill, kill_while_it_hangs, hang_up])
def test_the_fleet_ends_with_its_honcho_and_keeps_every_ride(
    fleet: Fleet, end: Callable[[Fleet], None]
) -> None:
    rides = post_rides(fleet)
    end(fleet)
    ended_with_honcho(fleet)

    fleet.start()
    keeps(fleet, rides)


def test_the_fleet_stops_in_good_order_and_ends_with_its_terminal(fleet: Fleet) -> None:
    rides = post_rides(fleet)
    fleet.honcho.send_signal(signal.SIGINT)
    assert fleet.honcho.wait(STOP_TIMEOUT) == 128 + signal.SIGINT
    assert fleet.processes() == []
    assert "SIGKILL" not in fleet.output.read_text()

    persons_end, fleet.terminal = os.openpty()
    try:
        fleet.start()
        keeps(fleet, rides)
    finally:
        os.close(fleet.terminal)
        os.close(persons_end)
        fleet.terminal = None
    if sys.platform == "linux":
        ended_with_honcho(fleet)
    else:
        fleet.kill()


def test_the_fleet_counts_every_ride_through_a_crash(small_fleet: Fleet) -> None:
    fleet = small_fleet
    with psycopg.connect(fleet.database) as connection:
        last, total = one_row(connection.execute("SELECT max(id), sum(distance) FROM rides"))
    fleet.agrees(last, total)
    rides = post_rides(fleet)
    fleet.kill()

    fleet.start(*WITHOUT_SIMULATOR)
    fleet.agrees(max(rides), total + sum(rides.values()))


def servers(fleet: Fleet) -> psutil.Process:
    [process] = [p for p, command in fleet.commands() if command[-2:] == ["-m", "demo.embedded"]]
    return process


def test_a_second_fleet_says_which_one_is_in_its_way_and_how_to_stop_it(
    small_fleet: Fleet, tmp_path: Path
) -> None:
    first = servers(small_fleet)
    port = {"API_PORT": str(free_ports())}
    second = small_fleet.spawn(tmp_path / "second.log", *WITHOUT_SIMULATOR, **port)
    assert second.wait(PATIENCE) == 1
    said = (tmp_path / "second.log").read_text()
    refusals = {line.partition("| ")[2] for line in said.splitlines() if "DATA_DIR" in line}
    assert refusals == {
        f"another fleet (process {first.pid}) uses {small_fleet.data}:"
        f" `kill {first.pid}` stops it; or set another DATA_DIR"
    }


def test_the_first_fleet_stops_as_the_second_was_told(small_fleet: Fleet) -> None:
    os.kill(servers(small_fleet).pid, signal.SIGTERM)
    small_fleet.honcho.wait(STOP_TIMEOUT)
    assert small_fleet.processes() == []


@on_linux
def test_a_process_whose_honcho_was_killed_before_it_could_look_ends_too(new_fleet: Fleet) -> None:
    fleet = new_fleet
    fleet.honcho = fleet.spawn(fleet.output)
    eventually(lambda: "simulator.1 started" in fleet.output.read_text(), "the last process")
    fleet.honcho.kill()
    fleet.honcho.wait(PATIENCE)
    fleet.ends(STOP_TIMEOUT)
