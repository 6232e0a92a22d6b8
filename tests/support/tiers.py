"""The tiers of the tests, each a folder of its own: how long each took, at the end of a run."""

from collections import Counter

import pytest

TIERS = ("fast", "services", "analytics", "fleet")


class Times:
    """The tests and the seconds of each tier, as the reports say, from whatever worker."""

    def __init__(self) -> None:
        self._tests: Counter[str] = Counter()
        self._seconds: dict[str, float] = dict.fromkeys((*TIERS, "other"), 0.0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folders = report.nodeid.partition("::")[0].split("/")
        tier = next((tier for tier in TIERS if tier in folders), "other")
        self._tests[tier] += report.when == "setup"  # of its reports, the one that each test has
        self._seconds[tier] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for tier in (*TIERS, "other"):
            if tests := self._tests[tier]:
                terminalreporter.write_line(
                    f"tests/{tier:<10} {tests:5} tests {self._seconds[tier]:7.1f} s"
                )


def pytest_configure(config: pytest.Config) -> None:
    """Only where the results come together: the workers of pytest-xdist report to that."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Times(), "tiers")
