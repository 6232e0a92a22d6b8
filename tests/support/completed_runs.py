"""What the runs of the nightly job have written down: their rows in `runs`."""

from typing import Any, NamedTuple

from tests.support.world import World
from unified_log.database import one_row

LAST = "SELECT id, status, verdicts, findings FROM runs ORDER BY id DESC LIMIT 1"

REASON = ["--reason", "asked for by the customer"]


class CompletedRun(NamedTuple):
    """The newest row of `runs`, as far as tests ask."""

    id: int
    status: str
    verdicts: dict[str, str]
    findings: list[dict[str, Any]]

    @property
    def kinds(self) -> set[str]:
        return {finding["kind"] for finding in self.findings}

    @property
    def held(self) -> set[str]:
        """The kinds of what awaits a person's decision."""
        return {finding["kind"] for finding in self.findings if finding["held"]}

    @property
    def rides(self) -> dict[int, dict[str, Any]]:
        """The rides that are named, with what Postgres and the warehouse say of each."""
        lists = (finding.get("rides") or [] for finding in self.findings)
        return {ride["id"]: ride for rides in lists for ride in rides}

    @property
    def differing(self) -> int:
        """How many rides differ."""
        return sum(finding.get("differing") or 0 for finding in self.findings)

    def about(self, kind: str) -> str:
        """What the findings of a kind are about."""
        return " ".join(str(each["about"]) for each in self.findings if each["kind"] == kind)


def last_run(world: World) -> CompletedRun:
    return CompletedRun(*one_row(world.connection.execute(LAST)))


def statuses(world: World) -> list[str]:
    """Those of all runs, the oldest first."""
    return [status for (status,) in world.connection.execute("SELECT status FROM runs ORDER BY id")]
