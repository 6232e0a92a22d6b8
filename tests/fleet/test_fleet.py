"""The whole fleet, started as a person would: every ride counts, and nothing is left behind."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest

from rocket_rides.settings import PROJECT, Settings, embedded_postgres_url
from tests.support.folders import short_folder
from tests.support.world import PATIENCE, eventually, free_port

RIDES = 200
# All of the Procfile but the simulator, whose rides nobody has added up.
WITHOUT_SIMULATOR = ("servers", "api", "streamer", "consumer0", "consumer1")
CHOSEN_BY_THE_PROCFILE = {"DATABASE_URL", "REDIS_URL", "CRASH_RATE", "DOUBLE_SEND_RATE"}
STOP_TIMEOUT = 10

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

# name: (last ride, total)
Standings = dict[str, tuple[int, Decimal]]


def take_the_terminal() -> None:
    """Make the standard input, in a new session, the terminal whose end is the session's."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Fleet:
    """`honcho start` on a data folder and a port of its own; its output goes to a file."""

    def __init__(self, place: Path) -> None:
        self.data = place / "data"
        self.output = place / "output.log"
        self.url = f"http://127.0.0.1:{free_port()}"
        self.terminal: int | None = None

    def start(self, *processes: str) -> None:
        """Start the named processes, or all of the Procfile's, and wait until they serve."""
        self.honcho = self.spawn(self.output, *processes)
        eventually(self.ready, "a ready fleet")

    def spawn(self, output: Path, *processes: str, **settings: str) -> subprocess.Popen[bytes]:
        """`honcho start` in a session of its own."""
        given = {k: v for k, v in os.environ.items() if k not in CHOSEN_BY_THE_PROCFILE}
        given |= {
            "DATA_DIR": str(self.data),
            "API_PORT": self.url.rpartition(":")[2],
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        with output.open("wb") as file:
            return subprocess.Popen(
                [sys.executable, "-m", "honcho", "--env", os.devnull, "start", *processes],
                cwd=PROJECT,
                env=given | settings,
                stdin=self.terminal,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=take_the_terminal if self.terminal else None,
            )

    def ready(self) -> bool:
        assert self.honcho.poll() is None, self.output.read_text()
        try:
            return httpx.get(f"{self.url}/readyz").is_success
        except httpx.TransportError:
            return False

    def standings(self) -> Standings:
        answer = json.loads(httpx.get(f"{self.url}/consumers").content, parse_float=Decimal)
        return {
            consumer["name"]: (consumer["last_ride_id"], Decimal(consumer["total_distance"]))
            for consumer in answer["consumers"]
        }

    def agrees(self, last_ride: int, total: Decimal) -> None:
        """Wait until both consumers have the total."""
        both = dict.fromkeys(("consumer0", "consumer1"), (last_ride, total))
        eventually(lambda: self.standings() == both, f"{both} in GET /consumers")

    def processes(self) -> list[psutil.Process]:
        """Every living process of this fleet, its servers included."""
        return [process for process in psutil.process_iter() if self._owns(process)]

    def _owns(self, process: psutil.Process) -> bool:
        try:
            return (
                process.environ().get("DATA_DIR") == str(self.data)
                or Path(process.cwd()).is_relative_to(self.data)
            ) and process.pid != os.getpid()
        except psutil.Error:
            return False

    def kill(self) -> None:
        """SIGKILL everything, in whatever order, and what was started meanwhile."""
        eventually(lambda: not self._kill_the_living(), "the end of the fleet")
        self.honcho.wait(PATIENCE)

    def _kill_the_living(self) -> int:
        living = self.processes()
        for process in living:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        return len(living)

    @property
    def database(self) -> str:
        return embedded_postgres_url(Settings.model_construct(data_dir=self.data).socket_dir)


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with short_folder() as place:
        fleet = Fleet(place)
        yield fleet
        fleet.kill()
        shutil.rmtree(Settings.model_construct(data_dir=fleet.data).socket_dir, ignore_errors=True)


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


def test_the_fleet_counts_every_ride_through_a_clean_stop_and_a_crash(fleet: Fleet) -> None:
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
    SELECT count(*) FROM checkpoints JOIN consumer_states USING (name)
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
def test_a_process_whose_honcho_was_killed_before_it_could_look_ends_too(fleet: Fleet) -> None:
    fleet.honcho = fleet.spawn(fleet.output)
    eventually(lambda: any("simulator" in process.cmdline() for process in fleet.processes()))
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
    [servers] = [p for p in fleet.processes() if p.cmdline()[-2:] == ["-m", "embedded"]]
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
