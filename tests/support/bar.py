"""A pytest plugin for `make test` that shows progress: a bar on a terminal, else plain lines.

It replaces pytest's dots, which stop while a slow test runs. When a test fails, it says at once
which and why, in a few lines; pytest prints the tracebacks at the end.
"""

import os
import threading
import time
from typing import Any, TextIO

import pytest
from tqdm import tqdm

EVERY = 1.5  # seconds between dots; two with a busy machine
DOTS = 20  # after a line, so that the log of a run stays short
REASON = 6  # lines
ON_TERMINAL = 0.2
LONGEST_NAME = 60
FORMAT = "{percentage:3.0f} % {bar:20} {n_fmt} of {total_fmt} tests, {elapsed}{postfix}"


class Lines:
    """Progress for a log: a line that says how far the run is, then a dot for every 1.5 s."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._dots = DOTS
        self._in_a_line = False
        self._lock = threading.Lock()

    def go_on(self, line: str, *, anew: bool) -> None:
        """Write a dot; first the line, if it is due or wanted `anew`."""
        with self._lock:
            if anew or self._dots >= DOTS:
                self._break()
                self._output.write(f"{line} ")
                self._in_a_line, self._dots = True, 0
            self._output.write(".")
            self._output.flush()
            self._dots += 1

    def say(self, text: str) -> None:
        """Write whole lines; progress goes on in a new line."""
        with self._lock:
            self._break()
            self._output.write(f"{text}\n")
            self._output.flush()

    def end(self) -> None:
        with self._lock:
            self._break()
            self._output.flush()

    def _break(self) -> None:
        if self._in_a_line:
            self._output.write("\n")
        self._in_a_line, self._dots = False, DOTS


class Bar:
    """Which tests are done, and which are running."""

    def __init__(self) -> None:
        # Of its own: a worker-less run points the standard output elsewhere while a test runs.
        self._output = os.fdopen(os.dup(1), "w")
        self._bar: tqdm[Any] = tqdm(
            total=0, file=self._output, bar_format=FORMAT, delay=1, disable=None, leave=False
        )
        self._lines = Lines(self._output)
        self._began = time.monotonic()
        self._running: dict[str, float] = {}  # since when
        self._total = self._done = self._failed = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def _show(self) -> None:
        said = 0  # of the tests that there are
        while not self._over.wait(EVERY if self._bar.disable else ON_TERMINAL):
            if self._bar.disable:
                self._lines.go_on(self._line(), anew=self._total != said)
                said = self._total
            else:
                self._bar.set_postfix_str(self._doing())

    def _line(self) -> str:
        percent = f"{100 * self._done // self._total} %, " if self._total else ""
        failed = f", {self._failed} failed" if self._failed else ""
        seconds = time.monotonic() - self._began
        return (
            f"{percent}{self._done} of {self._total or '?'} tests{failed}, {seconds:.0f} s:"
            f" {self._doing()}"
        )

    def _doing(self) -> str:
        """The test that has been running for longest."""
        running = sorted(self._running.copy().items(), key=lambda item: item[1])
        if not running:
            return "collecting" if not self._done else "finishing"
        name, since = running[0]
        return f"{name.rpartition('::')[2][:LONGEST_NAME]} ({time.monotonic() - since:.0f} s)"

    def _say(self, text: str) -> None:
        if self._bar.disable:
            self._lines.say(text)
        else:
            self._bar.write(text, file=self._output)
            self._output.flush()

    def pytest_sessionstart(self) -> None:
        self._thread.start()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._expect(len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._expect(len(ids))

    def _expect(self, tests: int) -> None:
        self._total = self._bar.total = max(self._total, tests)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._running.pop(nodeid, None)
        self._done += 1
        self._bar.update()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed += 1
            self._say(f"FAILED {report.nodeid} ({report.when})\n{reason(report)}")

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Any:
        """Count results as pytest does, but show them only in its summary."""
        category, letter, word = yield
        return (category, letter, word) if self._over.is_set() else (category, "", "")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        self._over.set()
        self._thread.join()
        self._bar.close()
        self._lines.end()


def reason(report: pytest.TestReport) -> str:
    """Where a test failed, and the first lines of what pytest says about it."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = f"{crash.path}:{crash.lineno}: {crash.message}" if crash else report.longreprtext
    lines = text.splitlines()
    more = ["..."] if len(lines) > REASON else []
    return "\n".join(f"    {line}" for line in lines[:REASON] + more)


def pytest_configure(config: pytest.Config) -> None:
    """Only in the process that collects the results, and without -v or -q."""
    if not hasattr(config, "workerinput") and config.get_verbosity() == 0:
        config.pluginmanager.register(Bar(), "bar")
