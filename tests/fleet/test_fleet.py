"""The whole fleet, started as a person would: every ride counts, and nothing is left behind."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.support.honcho import Fleet, a_fleet
from tests.support.world import PATIENCE, eventually, free_port

RIDES = 200
# All of the Procfile but the simulator, whose rides nobody has added up.
WITHOUT_SIMULATOR = ("servers", "api", "streamer", "consumer0", "consumer1")
STOP_TIMEOUT = 10

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@pytest.fixture
def fleet(prepared: Path) -> Iterator[Fleet]:
    """With a database, but without a ride."""
    with a_fleet(prepared) as fleet:
        yield fleet


@pytest.fixture
def new_fleet() -> Iterator[Fleet]:
    """As it is after a clone."""
    with a_fleet() as fleet:
        yield fleet


def post_rides(fleet: Fleet, count: int) -> tuple[int, Decimal]:
    """Post rides from several clients at once; returns the last id and what they add up to."""
    distances = [Decimal(number * 12_345 + 1).scaleb(-3) for number in range(count)]
    with (
        httpx.Client(base_url=fleet.url, timeout=PATIENCE) as client,
        ThreadPoolExecutor(8) as pool,
    ):
        answers = list(
            pool.map(
                lambda metres: client.post("/rides", data={"distance": str(metres)}), distances
            )
        )
    assert {answer.status_code for answer in answers} == {201}
    return max(answer.json()["ride"]["id"] for answer in answers), sum(distances, Decimal(0))


def test_the_fleet_counts_every_ride_through_a_clean_stop_and_a_crash(new_fleet: Fleet) -> None:
    fleet = new_fleet
    fleet.start(*WITHOUT_SIMULATOR)
    last, total = post_rides(fleet, RIDES)
    fleet.agrees(last, total)

    fleet.honcho.send_signal(signal.SIGINT)
    assert fleet.honcho.wait(STOP_TIMEOUT) == 128 + signal.SIGINT
    assert fleet.processes() == []
    assert "SIGKILL" not in fleet.output.read_text()

    fleet.start(*WITHOUT_SIMULATOR)
    fleet.agrees(last, total)
    last, more = post_rides(fleet, RIDES)
    fleet.kill()

    fleet.start(*WITHOUT_SIMULATOR)
    fleet.agrees(last, total + more)


# At whatever rides they stand: while the simulator posts, no two looks see the same.
EXACT_PAST = """
    SELECT count(*) FROM checkpoints JOIN consumer_states USING (kind, name)
    WHERE last_ride_id >= %s
      AND total_distance = (SELECT sum(distance) FROM rides WHERE id <= last_ride_id)
"""


def test_the_whole_procfile_counts_every_ride_beside_the_simulators(fleet: Fleet) -> None:
    fleet.start()
    eventually(lambda: fleet.standings().get("consumer0", (0,))[0] > 0, "a ride of the simulator")
    last, _ = post_rides(fleet, RIDES)
    with psycopg.connect(fleet.database, autocommit=True) as connection:
        eventually(lambda: connection.execute(EXACT_PAST, [last]).fetchone() == (2,))
        row = connection.execute("SELECT count(*) > %s FROM rides", [RIDES]).fetchone()
    assert row == (True,)
    fleet.honcho.send_signal(signal.SIGINT)
    assert fleet.honcho.wait(STOP_TIMEOUT) == 128 + signal.SIGINT
    assert fleet.processes() == []
    assert "reconciling every day" in fleet.output.read_text()


def kill(fleet: Fleet) -> None:
    fleet.honcho.kill()


def kill_while_it_hangs(fleet: Fleet) -> None:
    """Its forks then hold more output than fits the pipe to it."""
    fleet.honcho.send_signal(signal.SIGSTOP)
    last, _ = post_rides(fleet, 4 * RIDES)
    eventually(lambda: min(ride for ride, _ in fleet.standings().values()) >= last)
    fleet.honcho.kill()


def hang_up(fleet: Fleet) -> None:
    fleet.honcho.send_signal(signal.SIGHUP)


def ended_with_honcho(fleet: Fleet) -> None:
    """Wait for the end of honcho, and of all that it has started, its servers in good order."""
    fleet.honcho.wait(PATIENCE)
    eventually(lambda: fleet.processes() == [], "the end of the fleet", STOP_TIMEOUT)
    # Not the end of it: a busy machine may need longer for that than the fleet has.
    assert "received fast shutdown request" in (fleet.data / "postgres.log").read_text()


@on_linux
@pytest.mark.parametrize("end", [kill, kill_while_it_hangs, hang_up])
def test_the_fleet_ends_with_its_honcho_and_keeps_every_ride(
    fleet: Fleet, end: Callable[[Fleet], None]
) -> None:
    fleet.start()
    last, _ = post_rides(fleet, RIDES)
    end(fleet)
    ended_with_honcho(fleet)

    fleet.start(*WITHOUT_SIMULATOR)
    with psycopg.connect(fleet.database, autocommit=True) as connection:
        eventually(lambda: connection.execute(EXACT_PAST, [last]).fetchone() == (2,))


@on_linux
def test_a_process_whose_honcho_was_killed_before_it_could_look_ends_too(new_fleet: Fleet) -> None:
    fleet = new_fleet
    fleet.honcho = fleet.spawn(fleet.output)
    eventually(lambda: any("simulator" in command for _, command in fleet.commands()))
    fleet.honcho.kill()
    fleet.honcho.wait(PATIENCE)
    eventually(lambda: fleet.processes() == [], "the end of the fleet", STOP_TIMEOUT)


@on_linux
def test_the_fleet_ends_with_its_terminal(fleet: Fleet) -> None:
    persons_end, fleet.terminal = os.openpty()
    fleet.start()
    os.close(fleet.terminal)
    os.close(persons_end)
    ended_with_honcho(fleet)


@pytest.mark.parametrize("taken", ["the folder and the port", "the folder"])
def test_a_second_fleet_says_which_one_is_in_its_way_and_how_to_stop_it(
    fleet: Fleet, tmp_path: Path, taken: str
) -> None:
    fleet.start("servers", "api")
    [servers] = [p for p, command in fleet.commands() if command[-2:] == ["-m", "embedded"]]
    port = {} if "port" in taken else {"API_PORT": str(free_port())}
    second = fleet.spawn(tmp_path / "second.log", *WITHOUT_SIMULATOR, **port)
    assert second.wait(PATIENCE) == 1
    said = (tmp_path / "second.log").read_text()
    refusals = {line.partition("| ")[2] for line in said.splitlines() if "DATA_DIR" in line}
    assert refusals == {
        f"another fleet (process {servers.pid}) uses {fleet.data}:"
        f" `kill {servers.pid}` stops it; or set another DATA_DIR"
    }
    assert "already in use" not in said
    for sign_of_taking_part in ("stands at", "standing by", "posted", "leading"):
        assert sign_of_taking_part not in said

    os.kill(servers.pid, signal.SIGTERM)
    fleet.honcho.wait(STOP_TIMEOUT)
    assert fleet.processes() == []
