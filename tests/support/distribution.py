"""Which worker of pytest-xdist runs which tests: whole files, or folders, in an order.

The tests of a file share its fixtures. The files beside a running fleet share that fleet and
a browser; those of the analytics share a Spark session, which is a JVM, in two halves, since one
worker alone would still be at them when all others are done. Those that need none of it, or have
one of their own, go to any worker. (Marks for `--dist loadgroup` would do, but they have no effect:
pytest-xdist 3.8 passes them on by renaming tests, which pytest 9.2 does not allow.)
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

ANALYTICS = "tests/analytics/"
SECOND_HALF = f"{ANALYTICS}test_o"  # of these files, by their names
ALONE = {
    f"{ANALYTICS}test_{name}.py"
    for name in ("added_up", "damage", "foreign_settings", "reconciler", "several_workers", "table")
}
SHARING = (ANALYTICS, "tests/fleet/beside/")
# First those that share: they keep a core busy for minutes. Beside them those that mostly wait,
# for processes to start and to heal.
ORDER = (*SHARING, "tests/fleet/", "tests/services/", "tests/")


def scope_of(nodeid: str) -> str:
    """The scope of a test: all tests of one scope run on the same worker."""
    file = nodeid.partition("::")[0]
    if file in ALONE:
        return file
    if file.startswith(ANALYTICS):
        return f"{ANALYTICS} ({'first' if file < SECOND_HALF else 'second'} half)"
    return next((folder for folder in SHARING if file.startswith(folder)), file)


def rank(nodeid: str) -> int:
    """The position of a test's scope in the order of the run."""
    return next(place for place, begin in enumerate(ORDER) if nodeid.startswith(begin))


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
        items.sort(key=lambda item: rank(item.nodeid))
