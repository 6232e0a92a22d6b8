"""Load that outgrows one API host: does a second one help?

Two hosts run the API and a third one the clients, all against one Postgres on a fourth; each is a
network namespace. First every host may use all processors, which they share, so that what a second
one adds is seen in who uses them. Then the API's hosts are small, so that one of them is outgrown
and the processors are not.

`python -m lab.benchmarks.hosts PORT HOST...`: the clients, on a host of theirs; prints requests/s.
"""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

import psutil

from cluster import network
from cluster.network import MACHINE, NETWORK, Host
from lab.benchmarks import load, tcp
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.shares import share
from lab.benchmarks.stand import PATIENCE, Stand, seconds_used, wait_until
from rocket_rides.settings import PROJECT

ROLE = "api_hosts"
PRIVILEGES = "ALL ON ALL TABLES IN SCHEMA public"
PORT = 8000
CLIENTS = 16
ROUNDS = 3
SECONDS = 2
STARTED = 1.0  # seconds until the clients have started
WATCHED = 1.5  # seconds after that in which it is seen who uses the processors
SMALL = 25.0  # percent of a core
UNIT = "requests/s"
CAN_BE_ADDED = Goal("ratio", ">=", 1.8)

Roots = dict[str, psutil.Process]


def measure(stand: Stand) -> list[Figure]:
    """One host and two take turns. Raises CannotMeasure."""
    with (
        network.hosts("api1", "api2", "load") as (*hosts, clients),
        contextlib.ExitStack() as exits,
    ):
        password = tcp.listen(stand.postgres, ROLE, MACHINE, NETWORK, PRIVILEGES)
        url = tcp.url(ROLE, password, MACHINE)
        apis = [exits.enter_context(_api(stand, host, url)) for host in hosts]
        roots = dict(zip(("one host", "the other host"), apis, strict=True))
        roots["Postgres"] = psutil.Process(stand.postgres.pid)
        both = Figure(f"POST /rides, {CLIENTS} clients, two API hosts", UNIT, "one API host")
        used = _compare(both, hosts, clients, roots)
        shares = [
            Figure(f"processor of {name} meanwhile", "% of a core", runs=runs)
            for name, runs in used.items()
        ]
        small = Figure(
            f"POST /rides, {CLIENTS} clients, two API hosts of {SMALL:.0f} % of a core",
            UNIT,
            "one such host",
            CAN_BE_ADDED,
        )
        for host, api in zip(hosts, apis, strict=True):
            exits.enter_context(share(host.name, api, SMALL))
        _compare(small, hosts, clients, roots)
    return [both, *shares, small]


@contextlib.contextmanager
def _api(stand: Stand, host: Host, url: str) -> Iterator[psutil.Process]:
    settings = {"API_HOST": host.address, "API_PORT": str(PORT), "DATABASE_URL": url}
    with stand.service("api", within=host.within, **settings) as process:
        wait_until(lambda: load.is_ready(PORT, host.address), f"the API is ready at {host.address}")
        yield process


def _compare(
    figure: Figure, hosts: Sequence[Host], clients: Host, roots: Roots
) -> dict[str, list[float]]:
    """Measure with all hosts, then with one; returns who used how much of a core with all."""
    used: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        with _posting(clients, hosts) as posting:
            everyone = roots | {"the clients": psutil.Process(posting.pid)}
            time.sleep(STARTED)
            before = {name: seconds_used(root) for name, root in everyone.items()}
            time.sleep(WATCHED)
            for name, root in everyone.items():
                share = 100 * (seconds_used(root) - before[name]) / WATCHED
                used.setdefault(name, []).append(share)
            figure.runs.append(_rate(posting))
        with _posting(clients, hosts[:1]) as posting:
            figure.limits.append(_rate(posting))
    return used


def _posting(clients: Host, hosts: Sequence[Host]) -> "subprocess.Popen[str]":
    """Start the clients."""
    addresses = [host.address for host in hosts]
    return subprocess.Popen(
        [*clients.within, sys.executable, "-m", "lab.benchmarks.hosts", str(PORT), *addresses],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        text=True,
    )


def _rate(posting: "subprocess.Popen[str]") -> float:
    """What they say in the end."""
    told, _ = posting.communicate(timeout=SECONDS + PATIENCE)
    return float(told)


def main() -> None:
    """Post rides to the hosts, in turn, and print how many a second."""
    port, *addresses = sys.argv[1:]
    print(load.rate(int(port), load.RIDES, CLIENTS, SECONDS, addresses))


if __name__ == "__main__":
    main()
