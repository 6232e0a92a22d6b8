"""Options of the Java that Spark starts in this process, which other programs must not get."""

import os

VARIABLE = "SPARK_SUBMIT_OPTS"  # in the environment


def add(*options: str) -> None:
    """Where the environment says something else, that holds: of two that differ, the last does."""
    os.environ[VARIABLE] = " ".join([*options, os.environ.get(VARIABLE, "")]).strip()
