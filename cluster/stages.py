"""What the job is doing right now, as the driver's web page of Spark tells programs.

The page is off by default: `spark.ui.enabled` switches it on.
"""

from collections.abc import Collection
from typing import Any, NamedTuple

from cluster.asking import Within

PORT = 4040
EXTRACT, REDUCE = "Extracting new rides", "Adding up new rides"


class Executor(NamedTuple):
    """An executor: the worker that it runs on, and its tasks."""

    host: str
    active: int
    failed: int


class Stages(Within):
    """Ask the driver's page. Everything is empty while there is none."""

    _application = ""

    def executors(self) -> list[Executor]:
        return [
            Executor(each["hostPort"].partition(":")[0], each["activeTasks"], each["failedTasks"])
            for each in self._ask("executors")
            if each["id"] != "driver"
        ]

    def amid(self, stage: str) -> bool:
        """Whether some of its tasks are over, and others are not."""
        return any(
            each.get("description") == stage and 0 < each["numCompletedTasks"] < each["numTasks"]
            for each in self._ask("jobs?status=running")
        )

    def busy(self, stage: str, among: Collection[str]) -> str:
        """One of these workers that is at work on a task, amid this stage; or an empty string."""
        if not self.amid(stage):
            return ""
        busy = (each.host for each in self.executors() if each.active and each.host in among)
        return next(busy, "")

    def failed_on(self, host: str) -> int:
        """How many tasks have failed there."""
        return sum(each.failed for each in self.executors() if each.host == host)

    def _ask(self, path: str) -> Any:
        if not self._application:
            known = self.json("/api/v1/applications")
            self._application = known[0]["id"] if known else ""
        if not self._application:
            return []
        return self.json(f"/api/v1/applications/{self._application}/{path}") or []
