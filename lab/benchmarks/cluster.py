"""The nightly job on a Spark cluster of one, two and three workers, each with one core.

All machines share this machine's processors. So the time that a run takes says less than the time
that all its processes use: what is spread over more workers, and what spreading costs.
"""

from collections.abc import Callable
from typing import Any

from cluster import rides
from cluster.spark import IN_ONE_PROCESS, Cluster, cluster
from lab.benchmarks.figures import Figure
from lab.benchmarks.shares import counted
from lab.benchmarks.stand import Stand
from rocket_rides import database

ALL = 10_000_000
ROUNDS = 3
COUNTS = {1: "one worker", 2: "two workers", 3: "three workers"}
MOST_CORES = "--conf spark.cores.max={} pyspark-shell"


def measure(stand: Stand) -> list[Figure]:
    """Workers in turns, and the same in one process. Raises NoHosts."""
    with counted("rides-cluster") as used, cluster(stand.say) as on:
        with database.connect(on.url, "cluster") as connection:
            stand.say("ten million rides")
            rides.insert(connection, ALL)
        figures = [
            *(
                _figures(name, {} if count == 1 else {"limit_name": COUNTS[1]})
                for count, name in COUNTS.items()
            ),
            _figures("one process, `local[*]`", {"limit_name": COUNTS[1]}),
        ]
        for _ in range(ROUNDS):
            runs = [
                *(_run(on, used, PYSPARK_SUBMIT_ARGS=MOST_CORES.format(count)) for count in COUNTS),
                _run(on, used, **IN_ONE_PROCESS),
            ]
            for pair, run in zip(figures, runs, strict=True):
                for figure, value, limit in zip(pair, run, runs[0], strict=True):
                    figure.runs.append(value)
                    if figure.limit_name:
                        figure.limits.append(limit)
    return [figure for pair in zip(*figures, strict=True) for figure in pair]


def _figures(name: str, limit: dict[str, Any]) -> tuple[Figure, Figure]:
    return (
        Figure(f"Full run over 10 million rides, {name}", "s", **limit),
        Figure(f"its processor time, with Spark's start: {name}", "s", **limit),
    )


def _run(on: Cluster, used: Callable[[], float], **settings: str) -> tuple[float, float]:
    """A run from the first ride: its seconds once Spark is up, and those of the processors."""
    on.forget_warehouse()
    before = used()
    result = on.result("measured", on.reconcile("measured", **settings))
    return float(result["seconds"]), used() - before
