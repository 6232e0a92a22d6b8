"""What Spark wrote down of a run that was broken: what it had lost, and had to do over."""

import json
from pathlib import Path
from typing import Any, NamedTuple


class Losses(NamedTuple):
    """Workers that were given up, tasks that were done over, and stages that were."""

    workers: list[str]
    tasks: int
    stages: int

    def __str__(self) -> str:
        workers = ", ".join(self.workers)
        return f"Spark gave up {workers}; tasks done over: {self.tasks}, stages: {self.stages}"


def losses(folder: Path) -> Losses:
    """By the event log of the only run in this folder, which must not be compressed."""
    files = sorted(folder.glob("*/events_*"))
    events = [json.loads(line) for file in files for line in file.read_text().splitlines()]

    def all_of(kind: str) -> list[dict[str, Any]]:
        return [event for event in events if event["Event"] == f"SparkListener{kind}"]

    hosts = {each["Executor ID"]: each["Executor Info"]["Host"] for each in all_of("ExecutorAdded")}
    return Losses(
        [hosts[each["Executor ID"]] for each in all_of("ExecutorRemoved")],
        sum(each["Task End Reason"]["Reason"] != "Success" for each in all_of("TaskEnd")),
        sum(each["Stage Info"]["Stage Attempt ID"] > 0 for each in all_of("StageSubmitted")),
    )
