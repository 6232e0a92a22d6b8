"""Shows the progress of Spark's tasks on a terminal while a stage of the job is running."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext, StatusTracker
from tqdm import tqdm

POLL = 0.2  # seconds
BAR = "{desc} |{bar:40}| {n_fmt} of {total_fmt} tasks, {elapsed}"


@contextmanager
def starting() -> Iterator[None]:
    """Show on a terminal that Spark is starting, for as long as it takes."""
    with tqdm(bar_format="Starting Spark", total=1, leave=False, disable=None):
        yield


@contextmanager
def shown(spark: SparkContext, stage: str) -> Iterator[None]:
    """Call Spark's jobs by the name of this stage, and show a progress bar of their tasks.

    The name is what Spark's own pages show. The bar is there if standard error is a terminal, and
    for the main thread alone: it counts the tasks of all.
    """
    spark.setJobDescription(stage)
    try:
        with _bar(spark.statusTracker(), stage):
            yield
    finally:
        spark.setJobDescription("")


@contextmanager
def _bar(tracker: StatusTracker, stage: str) -> Iterator[None]:
    if not sys.stderr.isatty() or threading.current_thread() is not threading.main_thread():
        yield
        return
    over = threading.Event()
    with tqdm(desc=stage, total=1, leave=False, bar_format=BAR) as bar:
        watcher = threading.Thread(target=_watch, args=(tracker, bar, over), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()


def _watch(tracker: StatusTracker, bar: "tqdm[None]", over: threading.Event) -> None:
    while not over.wait(POLL):
        running = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        stages = [stage for stage in running if stage is not None]
        if stages:
            bar.total = sum(stage.numTasks for stage in stages)
            bar.n = sum(stage.numCompletedTasks for stage in stages)
            bar.refresh()
