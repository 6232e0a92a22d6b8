"""The tiers of the tests, each a folder: says at the end of a run how long each took."""

from collections import Counter

import pytest

TIERS = ("fast", "services", "analytics", "fleet")


class Times:
    """Counts the tests and the seconds of each tier, from the reports of all workers."""

    def __init__(self) -> None:
        self._tests: Counter[str] = Counter()
        self._seconds: dict[str, float] = dict.fromkeys((*TIERS, "other"), 0.0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folders = report.nodeid.partition("::")[0].split("/")
        tier = next((tier for tier in TIERS if tier in folders), "other")
        self._tests[tier] += report.when == "setup"  # the one report that every test has
        self._seconds[tier] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for tier in (*TIERS, "other"):
            if tests := self._tests[tier]:
                terminalreporter.write_line(
                    f"tests/{tier:<10} {tests:5} tests {self._seconds[tier]:7.1f} s"
                )


def pytest_configure(config: pytest.Config) -> None:
    """Only in the process to which the workers of pytest-xdist report."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Times(), "tiers")
