"""The tiers, and which worker of pytest-xdist runs which tests: whole files, the longest first.

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

from tests.support.folders import what_is_there

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
BESIDE_A_FLEET = "tests/fleet/beside/"
# First those that use Spark: they keep a core busy for minutes. Beside them those that mostly
# wait, for processes to start and to heal. Then whatever the others would in the end wait for.
LONGEST = (
    "spark",
    "beside a fleet",
    "tests/fleet/test_chaos.py",
    "tests/fleet/test_servers_process.py",
    "tests/fleet/test_fleet.py",
    "tests/analytics/test_several_workers.py",
    "tests/analytics/test_lifted_night.py",
    "tests/fleet/test_embedded.py",
    "tests/services/test_receipts_members.py",
    "tests/services/test_receipts_lost.py",
    "tests/services/test_rollup_disasters.py",
    "tests/services/test_consumer.py",
    "tests/services/test_openapi.py",
    "tests/services/test_restores.py",
    "tests/services/test_refusals.py",
    "tests/services/test_repair.py",
)


def scope_of(nodeid: str) -> str:
    """The scope of a test: all tests of one scope run on the same worker."""
    file = nodeid.partition("::")[0]
    if file in SPARK:
        return "spark"
    return "beside a fleet" if file.startswith(BESIDE_A_FLEET) else file


def rank(scope: str) -> int:
    """The position of a scope in the order of the run."""
    return LONGEST.index(scope) if scope in LONGEST else len(LONGEST)


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """Gives the next scope to the next idle worker."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Number tests of the same name: otherwise only the first of them would run."""
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
    """The longest first, where there are workers to share them; the order within files stays."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: rank(scope_of(item.nodeid)))


BEFORE = pytest.StashKey[set[str]]()


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[BEFORE] = what_is_there()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at the end of a run how long each tier took, and what was left behind."""
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
    before = terminalreporter.config.stash[BEFORE]
    for left in sorted(what_is_there() - before):
        terminalreporter.write_line(f"left behind, unless another program made it: {left}")
