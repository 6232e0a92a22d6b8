"""Archives Java's classes, so that Spark starts in half of the time (`analytics.class_archive`).

They are archived anew after other packages were installed. Without an archive nothing but time is
lost.
"""

from analytics.prerequisites import CLASS_ARCHIVE
from demo.install import java
from demo.install.environment import PYTHON, VENV
from demo.install.steps import StepFailed, Steps

ARCHIVE = VENV / CLASS_ARCHIVE
OF_SPARK = (VENV / ".nightly", VENV / ".dev")  # the stamps of the parts that have it


def is_there() -> bool:
    """Whether there is one of the packages that are there."""
    stamps = [stamp.stat().st_mtime for stamp in OF_SPARK if stamp.exists()]
    return ARCHIVE.exists() and ARCHIVE.stat().st_mtime >= max(stamps, default=0)


def install(steps: Steps) -> None:
    """Make it, if there is a Java; the next run tries again."""
    if java.is_there():
        try:
            steps.run([str(PYTHON), "-m", "analytics.class_archive"])
        except StepFailed:
            steps.note("the archive could not be made; Spark only starts more slowly without it")
