"""Options of the Java that Spark starts, in a variable that only Spark's launcher reads."""

import os

VARIABLE = "SPARK_SUBMIT_OPTS"


def add(*options: str) -> None:
    """Add `options` before those that are there: of two that differ, Java takes the last."""
    os.environ[VARIABLE] = " ".join([*options, os.environ.get(VARIABLE, "")]).strip()
