"""The machines of a cluster: each on its own, joined by the ports that are documented, and mortal.

What Spark makes of it is proved by `make cluster`, which takes minutes.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from cluster import firewall
from cluster.boot import OWN, SHARED, TMP
from cluster.machine import Machine
from cluster.machines import machines
from cluster.network import NoHosts
from rocket_rides.settings import PROJECT
from tests.support.jobs import alive
from tests.support.world import PATIENCE, eventually

PREFIX = f"t{os.getpid()}"
NAMES = ("driver", "worker1", "postgres")
OPEN, CLOSED = 5432, 5433  # Postgres' own, and one that nobody documents
SERVE = f"""
import socket
servers = [socket.create_server(("", port)) for port in ({OPEN}, {CLOSED})]
open("/srv/serves", "w").close()
kept = []
while True:
    kept.append(servers[0].accept())
"""
CONNECT = "import socket; socket.create_connection(('postgres', {}), timeout=2)"
STAY = CONNECT.format(OPEN).replace(" socket.", " kept = socket.") + (
    "; open('/srv/connected', 'w').close(); kept.recv(1)"
)
KILLED = """
import sys
from cluster.machines import machines
with machines(sys.argv[2:], sys.argv[1]):
    print(flush=True)
    sys.stdin.read()
"""
ESTABLISHED = " 01 "  # a connection's state in /proc/net/tcp

Machines = dict[str, Machine]


@pytest.fixture(scope="module")
def running() -> Iterator[Machines]:
    with contextlib.ExitStack() as exits:
        try:
            them = exits.enter_context(machines(NAMES, PREFIX))
        except NoHosts as reason:
            pytest.skip(str(reason))
        them["postgres"].run(sys.executable, "-c", SERVE)
        eventually((them["postgres"].disk / "serves").exists)
        yield them


def succeeds(machine: Machine, *command: str) -> bool:
    return machine.run(*command).wait(PATIENCE) == 0


def connects(machine: Machine, port: int) -> bool:
    return succeeds(machine, sys.executable, "-c", CONNECT.format(port))


def test_a_machine_writes_on_its_own_disk_and_in_the_shared_folder_alone(
    running: Machines,
) -> None:
    driver, worker = running["driver"], running["worker1"]
    for place in (OWN, TMP, SHARED):
        assert succeeds(driver, "touch", f"{place}/by the driver")
    for place in (PROJECT, Path("/etc"), Path(sys.prefix)):
        assert not succeeds(driver, "touch", f"{place}/by the driver")
        assert not (place / "by the driver").exists()
    assert succeeds(worker, "test", "-e", f"{SHARED}/by the driver")
    for place in (OWN, TMP, driver.disk):
        assert not succeeds(worker, "test", "-e", f"{place}/by the driver")
    assert not succeeds(running["postgres"], "test", "-e", str(SHARED))


def test_only_what_is_documented_gets_through_and_the_rest_is_counted(running: Machines) -> None:
    postgres = running["postgres"]
    assert firewall.refused(postgres.host) == 0
    assert connects(running["driver"], OPEN)
    assert connects(running["worker1"], OPEN)
    assert firewall.refused(postgres.host) == 0
    assert not connects(running["driver"], CLOSED)
    assert firewall.refused(postgres.host) == 1


def test_who_is_cut_off_from_a_machine_reaches_it_again_afterwards(running: Machines) -> None:
    worker, address = running["worker1"], running["postgres"].host.address
    firewall.cut_off(worker.host, address)
    assert not connects(worker, OPEN)
    assert connects(running["driver"], OPEN)
    firewall.join_again(worker.host, address)
    assert connects(worker, OPEN)


def test_a_crash_ends_all_processes_tells_nobody_and_leaves_the_disk(running: Machines) -> None:
    worker, postgres = running["worker1"], running["postgres"]
    program = worker.run(sys.executable, "-c", STAY)
    eventually((worker.disk / "connected").exists)
    family = psutil.Process(program.pid).children(recursive=True)
    assert family
    worker.crash()
    assert not any(map(alive, family))
    assert succeeds(postgres, "cat", "/proc/net/tcp")
    assert ESTABLISHED in postgres.log.read_text()
    worker.boot()
    assert succeeds(worker, "test", "-e", "/srv/connected")
    assert connects(worker, OPEN)


@pytest.mark.usefixtures("running")
def test_a_killed_run_leaves_no_process_behind_and_the_next_one_clears_the_rest_away() -> None:
    prefix = f"{PREFIX}k"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, prefix, "worker1"],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as run:
        assert run.stdout
        assert run.stdout.readline() == b"\n"
        family = psutil.Process(run.pid).children(recursive=True)
        assert family
        with pytest.raises(NoHosts, match="another run"), machines(["worker1"], prefix):
            pass
        run.send_signal(signal.SIGKILL)
    eventually(lambda: not any(map(alive, family)), "the end of its machines")
    folder = Path(tempfile.gettempdir(), f"{prefix}-cluster")
    assert folder.exists()
    with machines(["worker1"], prefix) as them:
        assert succeeds(them["worker1"], "true")
    assert not folder.exists()
    assert not [name for _, name in socket.if_nameindex() if name.startswith(prefix)]
