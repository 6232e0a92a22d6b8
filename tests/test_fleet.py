"""The whole fleet, started as a person would: every ride counts, and nothing is left behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest

from rocket_rides.settings import PROJECT, Settings, embedded_postgres_url
from tests.world import PATIENCE, eventually, free_port

RIDES = 200
# All of the Procfile but the simulator, whose rides nobody has added up.
WITHOUT_SIMULATOR = ("servers", "api", "streamer", "consumer0", "consumer1")
CHOSEN_BY_THE_PROCFILE = {"DATABASE_URL", "REDIS_URL", "CRASH_RATE", "DOUBLE_SEND_RATE"}
STOP_TIMEOUT = 10

# name: (last ride, total)
Standings = dict[str, tuple[int, Decimal]]


class Fleet:
    """`honcho start` on a data folder and a port of its own; its output goes to a file."""

    def __init__(self, place: Path) -> None:
        self.data = place / "data"
        self.output = place / "output.log"
        self.url = f"http://127.0.0.1:{free_port()}"

    def start(self, *processes: str) -> None:
        """Start the named processes, or all of the Procfile's."""
        given = {k: v for k, v in os.environ.items() if k not in CHOSEN_BY_THE_PROCFILE}
        given |= {
            "DATA_DIR": str(self.data),
            "API_PORT": self.url.rpartition(":")[2],
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        with self.output.open("wb") as output:
            self.honcho = subprocess.Popen(
                [sys.executable, "-m", "honcho", "--env", os.devnull, "start", *processes],
                cwd=PROJECT,
                env=given,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        eventually(self.ready, "a ready fleet")

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
    place = Path(tempfile.mkdtemp(prefix="rr-", dir="/tmp"))
    place.chmod(0o755)
    fleet = Fleet(place)
    yield fleet
    fleet.kill()
    shutil.rmtree(Settings.model_construct(data_dir=fleet.data).socket_dir, ignore_errors=True)
    shutil.rmtree(place)


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
