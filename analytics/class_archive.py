"""`python -m analytics.class_archive`: archives the classes that Spark's Java loads.

Most of what a short run takes is Java's, which reads, checks and links the same 20,000 classes in
every process. A class-data archive (JEP 350) keeps them in the form that a process maps into its
memory. It is made once, from what a small job has loaded; it is used where a run is its own cluster
(`analytics.java`). On two cores that job takes 7.2 s with the archive and 14.2 s without.

The archive appears complete, by a rename. A crash leaves an unfinished file, which the next one
overwrites.
"""

import os
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession

from analytics import parquet
from analytics.cells import cells
from analytics.java import ARCHIVE, QUIET, add_options
from analytics.minutes import by_minute, collected
from analytics.session import session


def make_archive() -> None:
    """Run a small job, and have its Java write the archive when it ends. Raises OSError."""
    unfinished = ARCHIVE.with_suffix(".unfinished")
    ARCHIVE.unlink(missing_ok=True)
    add_options(*QUIET, f"-XX:ArchiveClassesAtExit={unfinished}")
    with session("local[2]") as spark, TemporaryDirectory() as folder:
        _run(spark, Path(folder))
        # PySpark tells nobody else which process is its Java, which writes the archive at its end.
        java = SparkContext._gateway.proc  # type: ignore[union-attr]
    java.stdin.close()
    java.wait()
    with unfinished.open() as file:  # Java would crash over one that is incomplete
        os.fsync(file.fileno())
    unfinished.rename(ARCHIVE)


def _run(spark: SparkSession, folder: Path) -> None:
    """Load what a run loads: tasks in Python, Parquet, sums."""
    ids = spark.sparkContext.parallelize([1, 2], 2).flatMap(lambda number: [number]).collect()
    now = datetime.now(UTC)
    rides = [
        {"id": number, "created_at": now, "distance": Decimal("0.001"), "day": now.date()}
        for number in ids
    ]
    parquet.write([pa.RecordBatch.from_pylist(rides, schema=parquet.schema())], folder)
    found = spark.read.parquet(folder.as_uri())
    cells(found, [1])
    collected(by_minute(found))


if __name__ == "__main__":
    make_archive()
