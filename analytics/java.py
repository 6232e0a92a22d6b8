"""The Java that Spark starts: with an archive of its classes it starts in half of the time.

Most of what a short run takes is Java's, which reads, checks and links the same 20,000 classes in
every process. A class-data archive (JEP 350) keeps them in the form that a process maps into its
memory. `python -m analytics.java` makes it once, from what a small job has loaded; it is used where
a run is its own cluster. Java ignores an archive that is not from this very Java and these very
jars. On two cores that job takes 7.2 s with the archive and 14.2 s without.

The archive appears complete, by a rename. A crash leaves an unfinished file, which the next one
overwrites.
"""

import os
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from analytics.prerequisites import CLASS_ARCHIVE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVE = Path(sys.prefix) / CLASS_ARCHIVE  # 180 MB
QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")  # or it would print why it ignores an archive
# Java's second compiler takes longer, for code that runs faster: that pays after ten seconds or so.
# The job above takes 7.8 s without it and 14.3 s with it.
FIRST_COMPILER_ALONE = "-XX:TieredStopAtLevel=1"
OPTIONS = "SPARK_SUBMIT_OPTS"  # an environment variable that only Spark's launcher reads


def add_options(*options: str) -> None:
    """Add `options` before those that are there: of two that differ, Java takes the last."""
    os.environ[OPTIONS] = " ".join([*options, os.environ.get(OPTIONS, "")]).strip()


def use_archive() -> None:
    """Have the Java that Spark starts in this environment use the archive, if there is one."""
    if ARCHIVE.exists():
        add_options(*QUIET, f"-XX:SharedArchiveFile={ARCHIVE}")


def make_archive() -> None:
    """Run a small job, and have its Java write the archive when it ends. Raises OSError."""
    from pyspark import SparkContext

    from analytics.session import session

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


def _run(spark: "SparkSession", folder: Path) -> None:
    """Load what a run loads: tasks in Python, Parquet, sums."""
    import pyarrow as pa

    from analytics import parquet
    from analytics.cells import cells
    from analytics.minutes import by_minute, collected

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
