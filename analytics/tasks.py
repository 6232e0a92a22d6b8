"""Runs Spark's tasks: what their Python has imported is kept out of its garbage collection.

PySpark collects all garbage after each task. With pyarrow and ADBC that looked at 60,000 objects:
40 ms, as long as a small task itself takes.
"""

import gc
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from analytics.from_postgres import send_along

if TYPE_CHECKING:
    from pyspark import SparkContext


def done(
    spark: "SparkContext", task: Callable[[Any], Any], items: Sequence[Any], slices: int
) -> list[Any]:
    """What a task makes of each item, in their order. Raises what Spark raises."""
    if not items:  # Spark would run an empty job
        return []
    send_along(sys.modules[__name__])
    return spark.parallelize(items, slices).map(partial(_run, task)).collect()


def _run(task: Callable[[Any], Any], item: Any) -> Any:
    """Runs on an executor, in a Python process that goes on to other tasks."""
    result = task(item)
    if not gc.get_freeze_count():
        gc.freeze()
    return result
