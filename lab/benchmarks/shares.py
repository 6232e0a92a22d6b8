"""Shares of a processor, and what was used of it, by Linux's control groups. Root only."""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil

from lab.benchmarks.stand import CannotMeasure

CGROUPS = Path("/sys/fs/cgroup")
UNIFIED = (CGROUPS / "unified", CGROUPS)  # where version 2 may be mounted
PERIOD = 10_000  # microseconds over which a share is kept


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


@contextlib.contextmanager
def counted(name: str) -> Iterator[Callable[[], float]]:
    """Count the seconds that this process and all that it starts meanwhile use of processors.

    Also of those that have ended, whoever was their parent. Raises CannotMeasure.
    """
    root = next((each for each in UNIFIED if (each / "cgroup.controllers").exists()), None)
    if root is None:
        raise CannotMeasure("there is no control group that counts the time of processors")
    before = re.findall(r"^0::/(.*)$", Path("/proc/self/cgroup").read_text(), re.MULTILINE)[0]
    folder = root / name
    folder.mkdir(exist_ok=True)
    this = psutil.Process()
    try:
        _move([this], folder)
        yield lambda: _used(folder)
    finally:
        _move([this, *this.children(recursive=True)], root / before)
        folder.rmdir()


def _used(folder: Path) -> float:
    words = (folder / "cpu.stat").read_text().split()
    return int(words[words.index("usage_usec") + 1]) / 1e6


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
