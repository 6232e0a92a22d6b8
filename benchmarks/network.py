"""Hosts on one machine: network namespaces that are joined by a bridge, and shares of a processor.

The machine itself is one host, at DATABASE. Addresses are of the range that is set aside for
benchmarks (RFC 2544), and nothing is routed further. A killed run leaves namespaces and the bridge
behind; the next one removes them first. Linux only, and root.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from benchmarks.stand import CannotMeasure

NETWORK = "198.18.0.0/24"
ADDRESS = "198.18.0.{}"
DATABASE = ADDRESS.format(1)
CGROUPS = Path("/sys/fs/cgroup")
PERIOD = 10_000  # microseconds over which a share is kept


class Host:
    """A network namespace with an address."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.address = ADDRESS.format(number)

    @property
    def within(self) -> Sequence[str]:
        """What runs a program on this host."""
        return ("ip", "netns", "exec", self.name)

    def remove(self) -> None:
        """Remove it and its link, if it is there. The kernel takes its time for a link within."""
        _ip("link", "delete", self.name, check=False)
        _ip("netns", "delete", self.name, check=False)


@contextlib.contextmanager
def hosts(*names: str, prefix: str = "rides") -> Iterator[list[Host]]:
    """These hosts and a bridge between them and the machine. Raises CannotMeasure."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        raise CannotMeasure("it takes root and ip, of iproute2, to make network namespaces")
    bridge = f"{prefix}-bridge"
    members = [Host(f"{prefix}-{name}", number) for number, name in enumerate(names, start=11)]
    _remove(bridge, members)
    try:
        _ip("link", "add", bridge, "type", "bridge")
        _ip("address", "add", f"{DATABASE}/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for host in members:
            _ip("netns", "add", host.name)
            _ip(
                "link", "add", host.name, "type", "veth", "peer", "name", "eth0", "netns", host.name
            )
            _ip("link", "set", host.name, "master", bridge, "up")
            _ip("-n", host.name, "address", "add", f"{host.address}/24", "dev", "eth0")
            _ip("-n", host.name, "link", "set", "eth0", "up")
        yield members
    finally:
        _remove(bridge, members)


def _remove(bridge: str, members: Sequence[Host]) -> None:
    for host in members:
        host.remove()
    _ip("link", "delete", bridge, check=False)


def _ip(*words: str, check: bool = True) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)  # noqa: S607
    if check and done.returncode:
        raise CannotMeasure(f"ip {' '.join(words)}: {done.stderr.strip()}")


@contextlib.contextmanager
def share(name: str, root: psutil.Process, percent: float) -> Iterator[None]:
    """Let a process and its children have so many percent of one core during the block.

    Raises CannotMeasure.
    """
    folder = _cgroup() / name
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise CannotMeasure(f"no share of the processors can be given: {error}") from error
    quota = int(PERIOD * percent / 100)
    if (folder / "cpu.max").exists():
        (folder / "cpu.max").write_text(f"{quota} {PERIOD}")
    else:
        (folder / "cpu.cfs_period_us").write_text(str(PERIOD))
        (folder / "cpu.cfs_quota_us").write_text(str(quota))
    family = [root, *root.children(recursive=True)]
    try:
        _move(family, folder)
        yield
    finally:
        _move(family, folder.parent)
        folder.rmdir()


def _cgroup() -> Path:
    """Where this machine keeps shares of the processor: version 1 of its control groups, or 2."""
    first = CGROUPS / "cpu"
    if (first / "cpu.cfs_quota_us").exists():
        return first
    enabled = CGROUPS / "cgroup.subtree_control"
    if not enabled.exists() or "cpu" not in enabled.read_text().split():
        raise CannotMeasure("there is no control group for shares of the processor")
    return CGROUPS


def _move(family: Sequence[psutil.Process], folder: Path) -> None:
    for process in family:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            (folder / "cgroup.procs").write_text(str(process.pid))
