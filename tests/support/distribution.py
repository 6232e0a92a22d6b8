"""The tiers, and which worker of pytest-xdist runs which tests: whole files, in an order.

The tests of a file share its fixtures. The files beside a running fleet share that fleet and
a browser, and the files that use Spark share a session, which is a JVM. (Marks for
`--dist loadgroup` would do, but they have no effect: pytest-xdist 3.8 passes them on by renaming
tests, which pytest 9.2 does not allow.)
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

TIERS = ("fast", "services", "analytics", "fleet")  # each a folder
SPARK = (
    "tests/analytics/test_class_archive.py",
    "tests/analytics/test_encrypted_night.py",
    "tests/analytics/test_hostile_defaults.py",
    "tests/analytics/test_ownership.py",
    "tests/analytics/test_pgbouncer.py",
    "tests/analytics/test_receipts_of_a_night.py",
    "tests/analytics/test_reconcile.py",
    "tests/analytics/test_reconcile_process.py",
    "tests/analytics/test_rollup_proved.py",
    "tests/analytics/test_sums_in_spark.py",
    "tests/analytics/test_united_cells.py",
    "tests/analytics/test_warehouse.py",
)
# First those that use Spark: they keep a core busy for minutes. Beside them those that mostly
# wait, for processes to start and to heal.
ORDER = ("spark", "beside a fleet", "tests/fleet/", "tests/analytics/", "tests/services/", "tests/")


def scope_of(nodeid: str) -> str:
    """The scope of a test: all tests of one scope run on the same worker."""
    file = nodeid.partition("::")[0]
    if file in SPARK:
        return "spark"
    return "beside a fleet" if file.startswith("tests/fleet/beside/") else file


def rank(scope: str) -> int:
    """The position of a scope in the order of the run."""
    return next(place for place, begin in enumerate(ORDER) if scope.startswith(begin))


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """Gives the next scope to the next idle worker."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Number tests of one name, as schemathesis makes them: else only the first would run."""
        seen: Counter[str] = Counter()
        names = []
        for name in collection:
            seen[name] += 1
            names.append(f"{name} ({seen[name]})" if seen[name] > 1 else name)
        super().add_node_collection(node, names)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    config.option.loadscopereorder = False
    return ByFile(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In that order, where there are workers to share them; the order within files stays."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: rank(scope_of(item.nodeid)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at the end of a run how long each tier took."""
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    for tier in TIERS:
        of_tier = [
            report
            for report in reports
            if isinstance(report, pytest.TestReport) and report.nodeid.startswith(f"tests/{tier}/")
        ]
        if of_tier:
            tests = sum(report.when == "setup" for report in of_tier)  # every test has one
            seconds = sum(report.duration for report in of_tier)
            terminalreporter.write_line(f"tests/{tier:<10} {tests:5} tests {seconds:7.1f} s")
