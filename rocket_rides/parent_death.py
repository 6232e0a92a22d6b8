"""Ending with the parent, so that a killed parent leaves no process behind (Linux only)."""

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Have the kernel kill this process, started by multiprocessing, when its parent dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        parent = multiprocessing.parent_process()
        if parent and os.getppid() != parent.pid:  # it died before we asked
            os._exit(1)


def preexec_die_with_parent(
    orphan_signal: signal.Signals = signal.SIGKILL,
) -> Callable[[], None] | None:
    """The same as a `preexec_fn` for subprocess; None where the system has no such feature.

    The signal comes when the *thread* that started the child ends: have it wait for the child.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # not in the child: after a fork nothing may be loaded
    parent = os.getpid()

    def ask_for_signal() -> None:
        # subprocess calls this after it has changed the user: that change would undo this.
        prctl(PR_SET_PDEATHSIG, orphan_signal)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)

    return ask_for_signal
