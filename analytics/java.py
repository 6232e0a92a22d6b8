"""The Java that Spark starts: its options, and an archive of its classes if there is one.

`analytics.class_archive` makes the archive. Java ignores one that is not from this very Java and
these very jars.
"""

import os
import sys
from pathlib import Path

from analytics.prerequisites import CLASS_ARCHIVE

ARCHIVE = Path(sys.prefix) / CLASS_ARCHIVE  # 180 MB
QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")  # or it would print why it ignores an archive
# Java's second compiler takes longer, for code that runs faster: that pays after ten seconds or so.
# With the first compiler alone, making the archive takes 7.8 s; with both, 14.3 s.
FIRST_COMPILER_ALONE = "-XX:TieredStopAtLevel=1"
OPTIONS = "SPARK_SUBMIT_OPTS"  # an environment variable that only Spark's launcher reads


def add_options(*options: str) -> None:
    """Add `options` before those that are there: of two that differ, Java takes the last."""
    os.environ[OPTIONS] = " ".join([*options, os.environ.get(OPTIONS, "")]).strip()


def use_archive() -> None:
    """Have the Java that Spark starts in this environment use the archive, if there is one."""
    if ARCHIVE.exists():
        add_options(*QUIET, f"-XX:SharedArchiveFile={ARCHIVE}")
