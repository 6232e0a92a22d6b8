"""Machines that only reach each other's documented ports, and of which nothing is left afterwards.

What a killed run leaves behind (namespaces, a bridge, a folder), the next one removes. Only one run
at a time has machines of one prefix.
"""

import contextlib
import fcntl
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cluster import firewall, network
from cluster.machine import Machine
from cluster.network import NoHosts
from cluster.waiting import wait_until

SHARED = "shared"  # a folder beside the machines' disks, as it is seen from outside
SHARE_IT = {"driver", "worker"}


def kind(name: str) -> str:
    """What a machine is, by its name."""
    return name.rstrip("0123456789")


@contextlib.contextmanager
def machines(names: Sequence[str], prefix: str) -> Iterator[dict[str, Machine]]:
    """Machines of these names, booted. Raises NoHosts."""
    firewall.require_nft()
    folder = Path(tempfile.gettempdir()) / f"{prefix}-cluster"
    with (
        _the_only_run_in(folder),
        network.hosts(*names, prefix=prefix, machine=False) as hosts,
        contextlib.ExitStack() as exits,
    ):
        shared = folder / SHARED
        shared.mkdir(parents=True)
        known = {name: host.address for name, host in zip(names, hosts, strict=True)}
        booted = {}
        for name, host in zip(names, hosts, strict=True):
            firewall.close(host, kind(name), _by_kind(known))
            sees = shared if kind(name) in SHARE_IT else None
            booted[name] = Machine(name, host, folder / name, known, sees)
            booted[name].boot()
            exits.callback(booted[name].crash)
        yield booted


@contextlib.contextmanager
def _the_only_run_in(folder: Path) -> Iterator[None]:
    """Nobody else uses the folder meanwhile. It is not there before, and not afterwards."""
    with folder.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NoHosts("another run has the hosts") from None
        try:
            wait_until(lambda: _is_gone(folder), f"the end of what writes to {folder}")
            yield
        finally:
            wait_until(lambda: _is_gone(folder), f"the end of what writes to {folder}")


def _is_gone(folder: Path) -> bool:
    """Remove it. The kernel may still be ending the processes of a killed run."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def _by_kind(known: Mapping[str, str]) -> dict[str, list[str]]:
    addresses: dict[str, list[str]] = {}
    for name, address in known.items():
        addresses.setdefault(kind(name), []).append(address)
    return addresses
