"""Hosts on one machine: network namespaces, each with an address, that are joined by a bridge.

Addresses are of the range that is set aside for benchmarks (RFC 2544), and nothing is routed
further. A killed run leaves namespaces and the bridge behind; the next one removes them first.
Linux only, and root.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence

NETWORK = "198.18.0.0/24"
ADDRESS = "198.18.0.{}"
MACHINE = ADDRESS.format(1)  # this machine itself, where it is a host too


class NoHosts(Exception):
    """Hosts can't be made here; the message says what is missing."""


class Host:
    """A network namespace with an address."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.address = ADDRESS.format(number)

    @property
    def within(self) -> Sequence[str]:
        """What runs a program on this host."""
        return ("ip", "netns", "exec", self.name)

    def add(self, bridge: str) -> None:
        """Make it, with a link to the bridge."""
        ip("netns", "add", self.name)
        ip("link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        ip("link", "set", self.name, "master", bridge, "up")
        ip("-n", self.name, "address", "add", f"{self.address}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            ip("-n", self.name, "link", "set", link, "up")

    def unplug(self) -> None:
        """From now on nothing reaches it and nothing leaves it; the others are not told."""
        ip("link", "set", self.name, "down")

    def plug_in(self) -> None:
        ip("link", "set", self.name, "up")

    def remove(self) -> None:
        """Remove it and its link, if it is there. The kernel takes its time for a link within."""
        ip("link", "delete", self.name, check=False)
        ip("netns", "delete", self.name, check=False)


@contextlib.contextmanager
def hosts(*names: str, prefix: str = "rides", machine: bool = True) -> Iterator[list[Host]]:
    """These hosts and a bridge between them, and the `machine` if it is one. Raises NoHosts."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        raise NoHosts("it takes root and ip, of iproute2, to make network namespaces")
    bridge = f"{prefix}-bridge"
    members = [Host(f"{prefix}-{name}", number) for number, name in enumerate(names, start=11)]
    try:
        _remove(bridge, members)
        ip("link", "add", bridge, "type", "bridge")
        if machine:
            ip("address", "add", f"{MACHINE}/24", "dev", bridge)
        ip("link", "set", bridge, "up")
        for host in members:
            host.add(bridge)
        yield members
    finally:
        _remove(bridge, members)


def _remove(bridge: str, members: Sequence[Host]) -> None:
    for host in members:
        host.remove()
    ip("link", "delete", bridge, check=False)


def ip(*words: str, check: bool = True) -> None:
    """Run ip, of iproute2. Raises NoHosts, unless it may fail."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)  # noqa: S607
    if check and done.returncode:
        raise NoHosts(f"ip {' '.join(words)}: {done.stderr.strip()}")
