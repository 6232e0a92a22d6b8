"""`python -m module` as a fork of an interpreter that has imported most of what it needs.

A test run starts hundreds of services, and importing packages is ten times the work of all else at
their start: files of tests that start many take a third longer without this. The tests of a whole
fleet prove that each service also starts from nothing.
"""

import multiprocessing
import os
import runpy
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from tempfile import TemporaryDirectory

from rocket_rides.settings import PROJECT

# What the services import, but none of the modules that are run.
IMPORTED = (
    "api.app",
    "consumers.receipts.delivery",
    "consumers.rollup.lead",
    "unified_log.readers.running",
    "consumers.totals.reset",
    "granian.server",
    "migrations",
    "unified_log.log",
    "demo.simulator.client",
    "demo.simulator.customer",
    "unified_log.streamer.upkeep",
    "watch.server",
    # Of what is imported where telemetry is on, that which looks at no variable meanwhile.
    "opentelemetry.exporter.otlp.proto.http.metric_exporter",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
)
# What a run of the nightly job imports beside that.
OF_A_RUN = (
    "analytics.asking",
    "analytics.job",
    "analytics.report.machine",
    "analytics.report.page",
    "analytics.report.text",
)
LONGEST = 60.0  # seconds, of a command that ends by itself
# The interpreter that forks, one for each test process: it starts with the first service.
FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload([*IMPORTED])


def import_a_run() -> None:
    """Have it import that, too, in a test process that will start runs, unless it has started."""
    FORKING.set_forkserver_preload([*IMPORTED, *OF_A_RUN])


class Process(ForkServerProcess):
    """A service's process, which one waits for as for a `subprocess.Popen`."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        output: Path,
        errors: Path | None = None,
        folder: Path = PROJECT,
    ) -> None:
        """Start it; its output goes to a file, and so do its errors, by default to the same.

        In another folder it has that folder's packages, and none of the project's.
        """
        ours, its = FORKING.Pipe(duplex=False)
        with ours, its:
            given = (module, [*arguments], dict(environment), output, errors, folder, its)
            super().__init__(target=_run, args=given)
            self.start()
            its.close()
            ours.poll(None)  # until it is in a session of its own, or has ended

    @property
    def pid(self) -> int:
        assert self.ident
        return self.ident

    def poll(self) -> int | None:
        """The exit status, as `subprocess` has it, or None while the process is running."""
        return self.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self.join(timeout)
        if self.exitcode is None:
            raise subprocess.TimeoutExpired(self.name, timeout or 0)
        return self.exitcode


def completed(
    module: str, *arguments: str, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """What `python -m module` comes to, which ends by itself."""
    with TemporaryDirectory() as folder:
        output, errors = Path(folder, "output"), Path(folder, "errors")
        status = Process(module, arguments, environment, output, errors).wait(LONGEST)
        said = output.read_text(), errors.read_text()
        return subprocess.CompletedProcess([module, *arguments], status, *said)


def _run(
    module: str,
    arguments: list[str],
    environment: dict[str, str],
    output: Path,
    errors: Path | None,
    folder: Path,
    begun: Connection,
) -> None:
    """Become a process like that of `python -m module`."""
    os.setsid()
    with output.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if errors:
        with errors.open("wb") as file:
            os.dup2(file.fileno(), 2)
    begun.close()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    # It forks as any Python does, where a child of a fork server would import all anew.
    multiprocessing.set_start_method(None, force=True)
    if folder != PROJECT:
        _forget_the_project()
        sys.path[0] = str(folder)
    # As the interpreter does when it starts.
    sys.path[1:1] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _forget_the_project() -> None:
    """What was imported of it, and where it is. None of its modules changes another package."""
    packages = {path.parent.name for path in PROJECT.glob("*/__init__.py")}
    for name in [each for each in sys.modules if each.partition(".")[0] in packages]:
        del sys.modules[name]
    sys.path[:] = ["", *(path for path in sys.path if path and Path(path) != PROJECT)]
