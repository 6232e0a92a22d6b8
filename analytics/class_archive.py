"""`python -m analytics.class_archive`: archives the classes that Spark's Java loads.

Java takes most of a short run's time: every process reads, checks and links the same 20,000
classes. A class-data archive (JEP 350) keeps them in the form that a process maps into its memory.
It is made once, from what a small job has loaded; a run without a Spark cluster uses it
(`analytics.java`). On two cores that job takes 7.2 s with the archive and 14.2 s without.

The archive gets its name once it is complete. A crash leaves an unfinished file, which the next
attempt overwrites.
"""

import os
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyspark

from analytics import parquet
from analytics.java import ARCHIVE, QUIET, add_options
from analytics.minutes import by_minute, collected
from analytics.pieces import pieces
from analytics.session import session
from rocket_rides.settings import PROJECT

SPARK_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
LOAD = "load"  # the argument with which spark-submit runs this file


def make_archive() -> None:
    """Have the Java of a small job write the archive when it ends.

    Raises OSError, or subprocess.CalledProcessError.
    """
    unfinished = ARCHIVE.with_suffix(".unfinished")
    ARCHIVE.unlink(missing_ok=True)
    add_options(*QUIET, f"-XX:ArchiveClassesAtExit={unfinished}")
    # spark-submit becomes the Java itself, so it ends when the archive is written.
    subprocess.run(
        [SPARK_SUBMIT, "--master", "local[2]", __file__, LOAD],
        env=os.environ
        | {
            "PYTHONPATH": str(PROJECT),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        check=True,
    )
    with unfinished.open() as file:  # Java would crash over one that is incomplete
        os.fsync(file.fileno())
    unfinished.rename(ARCHIVE)


def load() -> None:
    """Load what a run loads: tasks in Python, Parquet, sums."""
    with session() as spark, TemporaryDirectory() as folder:
        ids = spark.sparkContext.parallelize([1, 2], 2).flatMap(lambda number: [number]).collect()
        now = datetime.now(UTC)
        rides = [
            {"id": number, "created_at": now, "distance": Decimal("0.001"), "day": now.date()}
            for number in ids
        ]
        batch = pa.RecordBatch.from_pylist(rides, schema=parquet.schema())
        parquet.write([batch], Path(folder))
        found = spark.read.parquet(Path(folder).as_uri())
        pieces(found, [1])
        collected(by_minute(found))


if __name__ == "__main__":
    if sys.argv[1:] == [LOAD]:
        load()
    else:
        make_archive()
