"""From a fresh clone to the first totals, as a person starts it: `make fleet`.

The clone has what is committed, and no cache. Packages come from where pip is configured to get
them, be that near or far.
"""

import re
import subprocess
import sys
import time
from pathlib import Path

import httpx

from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.stand import HOST, Stand, running
from lab.ports import free_ports
from lab.processes import clean_environment
from lab.until import until
from rocket_rides.settings import PORTS, PROJECT

LONGEST = 300.0  # seconds
# Variables of whoever measures, which name a cache or the virtual environment in use.
OWN = re.compile(r"VIRTUAL_ENV|PYTHON.*|UV_CACHE.*|PIP_CACHE.*|PYENV.*|MAKE.*|MFLAGS", re.A)


def measure(stand: Stand) -> list[Figure]:
    """Measure once: it takes long, and there is no limit to compare with."""
    clone, cache = stand.folder / "clone", stand.folder / "cache"
    port = free_ports(PORTS)
    own = {name: text for name, text in clean_environment().items() if not OWN.fullmatch(name)}
    settings = {"XDG_CACHE_HOME": str(cache), "API_PORT": str(port)}
    python = Path(sys.base_prefix) / "bin/python3"
    command = ["make", "fleet", f"PYTHON={python}"]
    began = time.monotonic()
    subprocess.run(["git", "clone", "--quiet", PROJECT, clone], check=True)  # noqa: S607
    with running(command, clone, stand.folder / "fleet.log", own | settings):
        late, away = "no ride gets into both totals", (httpx.HTTPError,)
        until(lambda: _both_totals(port), late, LONGEST, away=away)
        took = time.monotonic() - began
    name, goal = "From a fresh clone to the first totals", Goal("value", "<=", 40)
    return [Figure(name, "s", goal=goal, runs=[took])]


def _both_totals(port: int) -> bool:
    answer = httpx.get(f"http://{HOST}:{port}/consumers").raise_for_status()
    totals = [each for each in answer.json()["consumers"] if each["kind"] == "total"]
    return sum(bool(each["total_distance"]) for each in totals) == 2
