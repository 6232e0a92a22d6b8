"""Shares of a processor, by Linux's control groups. Root only."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from benchmarks.stand import CannotMeasure

CGROUPS = Path("/sys/fs/cgroup")
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
