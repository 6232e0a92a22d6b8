"""Hosts on this machine: each is a network namespace, with a cable to one switch.

A namespace without a name lasts as long as a process that has it open, or runs in it: this one, and
those that end with it. So even SIGKILL leaves none behind.
"""

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from demo.embedded.failures import NeverStarts

IP = shutil.which("ip", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
CLONE_NEWNET = 0x40000000  # a network namespace; see unshare(2) and setns(2)
OWN = "/proc/thread-self/ns/net"
SWITCH, OURS = "switch", "10.0.0.254"  # the drill itself has an address, too
LIBC = ctypes.CDLL(None)


class Host:
    """A namespace with one address. Make a `switch` first."""

    def __init__(self, name: str, address: str) -> None:
        self.address = address
        self._cable = name
        self._switch = os.open(OWN, os.O_RDONLY)
        _new_namespace()
        self._namespace = os.open(OWN, os.O_RDONLY)
        _enter(self._switch)
        inside = f"/proc/{os.getpid()}/fd/{self._namespace}"
        _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", inside)
        _ip("link", "set", name, "master", SWITCH, "up")
        with self.entered():
            _ip("link", "set", "lo", "up")
            _ip("address", "add", f"{address}/24", "dev", "eth0")
            _ip("link", "set", "eth0", "up")

    @contextmanager
    def entered(self) -> Iterator[None]:
        """This thread is on this host; what it starts is so for good. Then it is at the switch."""
        _enter(self._namespace)
        try:
            yield
        finally:
            _enter(self._switch)

    def cut_off(self) -> None:
        _ip("link", "set", self._cable, "down")

    def join(self) -> None:
        _ip("link", "set", self._cable, "up")


def lacking(programs: Mapping[str, object]) -> str:
    """What a drill lacks here, where it needs these packages' programs too; empty if nothing."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "root, on Linux: it makes network namespaces"
    lacks = [package for package, found in {"iproute2": IP, **programs}.items() if not found]
    return f"Debian's programs: apt install {' '.join(lacks)}" if lacks else ""


def switch() -> None:
    """Move this thread into a namespace with the switch. Raises NeverStarts where it may not."""
    _new_namespace()
    _ip("link", "set", "lo", "up")
    _ip("link", "add", SWITCH, "type", "bridge")
    _ip("address", "add", f"{OURS}/24", "dev", SWITCH)
    _ip("link", "set", SWITCH, "up")


def _new_namespace() -> None:
    if LIBC.unshare(CLONE_NEWNET) != 0:
        raise NeverStarts("the drill needs network namespaces, and may not make any here")


def _enter(namespace: int) -> None:
    if LIBC.setns(namespace, CLONE_NEWNET) != 0:
        raise OSError("a namespace can't be entered")


def _ip(*words: str) -> None:
    done = subprocess.run([IP or "ip", *words], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise NeverStarts(f"the drill can't set up its network: {done.stderr.strip()}")
