"""The benchmarks' parts: where the docs show them, and what they measure with."""

import contextlib
import io
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from cluster import network
from cluster.network import NoHosts
from demo.install.steps import Step, Steps
from lab.benchmarks import docs, memory, setup, shares
from lab.benchmarks.__main__ import CLUSTER, HOUR, PARTS
from lab.benchmarks.stand import CannotMeasure, seconds_used
from rocket_rides.settings import PROJECT
from tests.support.world import PATIENCE, eventually


def test_each_part_is_shown_once() -> None:
    shown = [name for page in docs.PAGES for name in docs.blocks(page.read_text())]
    assert sorted(shown) == sorted([*PARTS, HOUR, CLUSTER, *docs.OVERVIEWS])


def test_what_is_missed_stands_first_and_the_readme_shows_headlines() -> None:
    assert docs.blocks((PROJECT / "docs/performance.md").read_text())[0] == "summary"
    assert docs.blocks((PROJECT / "README.md").read_text()) == ["headlines"]


def test_a_process_that_ends_while_it_is_counted_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its parent has its seconds by then."""
    children = psutil.Process.children

    def ended(process: psutil.Process, recursive: bool = False) -> list[psutil.Process]:
        found = children(process, recursive)
        child.kill()
        child.wait()
        return found

    with subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({PATIENCE})"]) as child:
        monkeypatch.setattr(psutil.Process, "children", ended)
        assert seconds_used(psutil.Process()) > 0
    assert child.returncode < 0


def looks(*sizes: float) -> list[dict[str, float]]:
    return [{"api": size} for size in sizes]


def test_a_curve_shows_what_a_process_grows_to() -> None:
    table = memory.curves(looks(*range(1, 61)), minutes=60)
    [row] = table.rows
    assert row[0] == "api"
    assert row[1:-1] == ["8", "17", "25", "34", "42", "51", "60"]
    assert (row[-1][0], row[-1][-1], len(row[-1])) == ("▁", "█", 60)


@pytest.mark.parametrize(("sizes", "met"), [([30] * 30 + [31] * 30, True), ([*range(60)], False)])
def test_what_still_grows_after_half_the_time_is_not_flat(sizes: list[float], met: bool) -> None:
    figure = memory.grown("api", looks(*sizes))
    assert figure.met is met


@contextlib.contextmanager
def where_it_is_possible() -> Iterator[None]:
    try:
        yield
    except (CannotMeasure, NoHosts) as reason:
        pytest.skip(str(reason))


LISTEN = "import socket; s = socket.create_server(({!r}, 1)); print(flush=True); s.accept()"
CONNECT = "import socket; socket.create_connection(({!r}, 1), timeout=10)"


def test_hosts_reach_each_other_and_nothing_is_left_of_them() -> None:
    """Also when a killed run has left some behind."""
    before = {name for _, name in socket.if_nameindex()}
    prefix = f"t{os.getpid()}"
    killed = network.hosts("one", "other", prefix=prefix)
    with where_it_is_possible():
        killed.__enter__()
    with (
        network.hosts("one", "other", prefix=prefix) as (one, other),
        subprocess.Popen(
            [*other.within, sys.executable, "-c", LISTEN.format(other.address)],
            stdout=subprocess.PIPE,
        ) as listening,
    ):
        assert listening.stdout
        assert listening.stdout.readline() == b"\n"
        connect = [*one.within, sys.executable, "-c", CONNECT.format(other.address)]
        subprocess.run(connect, check=True, timeout=PATIENCE)
    assert {name for _, name in socket.if_nameindex()} == before


def test_a_process_gets_its_share_of_a_core() -> None:
    name = f"t{os.getpid()}"
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as spinning:
        try:
            with where_it_is_possible(), shares.share(name, psutil.Process(spinning.pid), 10):
                [counts] = shares.CGROUPS.glob(f"**/{name}/cpu.stat")
                eventually(lambda: "nr_throttled 0\n" not in counts.read_text())
        finally:
            spinning.kill()
    assert [*shares.CGROUPS.glob(f"**/{name}")] == []


SPIN = "import time\nwhile time.process_time() < 0.2: pass"


def test_what_has_ended_counts_too() -> None:
    name = f"t{os.getpid()}"
    with where_it_is_possible(), shares.counted(name) as used:
        before = used()
        subprocess.run([sys.executable, "-c", SPIN], start_new_session=True, check=True)
        assert used() - before >= 0.2
    assert [*shares.CGROUPS.glob(f"**/{name}")] == []


def test_each_step_of_an_installation_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def step(steps: Steps) -> None:
        steps.run([sys.executable, "-c", ""])

    with open(os.devnull) as lock:
        steps = [Step("getting uv, which is fast", step), Step("the 3 packages (large)", step)]
        Steps(steps, lock.fileno(), quiet=False).take()
    noted: dict[str, float] = {}
    setup.note(io.StringIO(capsys.readouterr().err), tmp_path / "output", noted)
    assert [*noted] == ["getting uv, which is fast", "the 3 packages (large)", setup.START]
    assert [*noted.values()] == sorted(noted.values())
