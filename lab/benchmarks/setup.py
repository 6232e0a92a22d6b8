"""From a fresh clone to the first totals, as a person starts it: `make fleet`.

The clone is of what is committed. It has a home of its own, in which nothing is cached; packages
come from where pip is configured to get them, be that near or far.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import IO

from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.stand import PATIENCE, Stand
from rocket_rides.settings import PROJECT, Settings

GOAL = Goal("value", "<=", 40)
LONGEST = 300.0  # seconds
POLL = 0.05
PIP_CONFIGURATIONS = (".config/pip/pip.conf", ".pip/pip.conf")
# Of the one who measures: they name a home, a cache, or the virtual environment in use.
OWN = re.compile(r"VIRTUAL_ENV|PYTHON.*|XDG_.*|UV_CACHE.*|PIP_CACHE.*|PYENV.*|MAKE.*|MFLAGS", re.A)
START = "the fleet, until both totals have a ride"
STEP = re.compile(r"\[\d+/\d+\] ([^:\n]+)")  # what the installer says first of each step


def measure(stand: Stand) -> list[Figure]:
    """Once: it takes long, and nothing is compared."""
    home = stand.folder / "home"
    clone = stand.folder / "clone"
    _make(home)
    began = time.monotonic()
    stand.say("git clone")
    subprocess.run(["git", "clone", "--quiet", PROJECT, clone], check=True)  # noqa: S607
    steps = {"git clone": began}
    port = _three_ports()
    with _fleet(clone, home, port, steps) as output:
        while not _both_totals(port):
            if time.monotonic() - began > LONGEST:
                raise TimeoutError(f"no totals in {LONGEST:.0f} s:\n{output.read_text()}")
            time.sleep(POLL)
        ended = time.monotonic()
    whole = Figure("From a fresh clone to the first totals", "s", goal=GOAL, runs=[ended - began])
    return [
        whole,
        *(
            Figure(f"of that: {what}", "s", runs=[until - since])
            for (what, since), (_, until) in pairwise([*steps.items(), ("", ended)])
        ),
    ]


def _make(home: Path) -> None:
    """An empty home, but for what says where packages come from."""
    home.mkdir()
    for name in PIP_CONFIGURATIONS:
        if (Path.home() / name).exists():
            (home / name).parent.mkdir(parents=True)
            shutil.copy(Path.home() / name, home / name)


@contextlib.contextmanager
def _fleet(clone: Path, home: Path, port: int, steps: dict[str, float]) -> Iterator[Path]:
    """Run `make fleet` during the block; `steps` gets when each step began. Yields the output."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name.lower() not in Settings.model_fields and not OWN.fullmatch(name)
    }
    python = Path(sys.base_prefix) / "bin/python3"
    fleet = subprocess.Popen(
        ["make", "fleet", f"PYTHON={python}"],  # noqa: S607
        cwd=clone,
        env=environment | {"HOME": str(home), "API_PORT": str(port)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    output = clone.with_suffix(".log")
    assert fleet.stdout
    reader = threading.Thread(target=note, args=(fleet.stdout, output, steps))
    reader.start()
    try:
        yield output
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(fleet.pid, signal.SIGINT)  # as Ctrl-C does
        try:
            fleet.wait(PATIENCE)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(fleet.pid, signal.SIGKILL)
        reader.join()


def note(lines: IO[str], output: Path, steps: dict[str, float]) -> None:
    """Copy the lines; note when each step began, the last of which is the fleet's own start."""
    with lines, output.open("w") as file:
        for line in lines:
            file.write(line)
            if step := STEP.match(line):
                steps.setdefault(step[1], time.monotonic())
            elif line.startswith("set up in "):
                steps[START] = time.monotonic()


def _three_ports() -> int:
    """A port of three in a row that are free: the API's, the page's and the simulator's."""
    while True:
        with contextlib.ExitStack() as exits, contextlib.suppress(OSError):
            first = exits.enter_context(socket.create_server(("127.0.0.1", 0)))
            port: int = first.getsockname()[1]
            for more in (1, 2):
                exits.enter_context(socket.create_server(("127.0.0.1", port + more)))
            return port


def _both_totals(port: int) -> bool:
    """Whether both consumers have counted a ride."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/consumers", timeout=5) as answer:
            readers = json.load(answer)["consumers"]
    except OSError:
        return False
    totals = [reader for reader in readers if reader["kind"] == "total"]
    return sum(bool(reader["total_distance"]) for reader in totals) == 2
