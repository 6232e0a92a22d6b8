"""Which worker of pytest-xdist runs which tests: a whole file, the files that take longest first.

A file's tests share what it has set up. The files that use Spark go to one worker all together,
since each worker that has a session has a JVM. (The marks of `--dist loadgroup` would say that,
but pytest-xdist 3.8 does not see them under pytest 9.2, which no longer lets it rename a test.)
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

SPARK = (
    "tests/analytics/test_ownership.py",
    "tests/analytics/test_reconcile.py",
    "tests/analytics/test_reconcile_runs.py",
    "tests/analytics/test_warehouse.py",
)
# What would otherwise be what everybody waits for in the end.
LONGEST = (
    "tests/analytics/test_reconcile_process.py",
    "tests/fleet/test_chaos.py",
    "tests/fleet/test_fleet.py",
    "tests/fleet/test_servers_process.py",
    "tests/services/test_openapi.py",
    "tests/services/test_state_machine.py",
    "tests/services/test_restores.py",
)


def scope_of(nodeid: str) -> str:
    """What a test shares a worker with."""
    file = nodeid.partition("::")[0]
    return "spark" if file in SPARK else file


def rank(scope: str) -> int:
    """When it is its turn."""
    first = ("spark", *LONGEST)
    return first.index(scope) if scope in first else len(first)


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """Spark's tests to one worker, and every other file to the next that has nothing to do."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Tell tests of one name apart: else only the first of them would run."""
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
