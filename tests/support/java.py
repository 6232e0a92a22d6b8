"""The Java of the tests' runs."""

import fcntl
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from tests.support.folders import cache

# It is over before its best compiler has warmed up, and tells other Javas nothing.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
# Looked for when this is imported, before any test's JAVA_HOME is one of these.
PLACES = f"{os.environ.get('JAVA_HOME', '')}/bin:{os.environ.get('PATH', os.defpath)}"
JAVA = shutil.which("java", path=PLACES)
# A program: what is read of Spark in it, others need not read and verify again.
STARTS_SPARK = """
from analytics.session import session
with session() as spark:
    spark.parallelize([1]).count()
"""
# Java says nothing of one that does not fit, and reads all itself.
UNFIT = "-Xlog:cds=off -Xlog:cds+dynamic=off"
PATIENCE = 300.0  # seconds


def short_lived_java(folder: Path) -> dict[str, str]:
    """Settings that lead to it, with its files in `folder`; none where there is no Java.

    It is a JAVA_HOME, since a run takes no JAVA_TOOL_OPTIONS.
    """
    if JAVA is None:
        return {}
    classes = archive(JAVA)
    return _home(
        folder,
        f'[ -f "{classes}" ] && set -- "-XX:SharedArchiveFile={classes}" {UNFIT} "$@"\n'
        f'exec "{JAVA}" {SHORT_LIVED} "-Djava.io.tmpdir={folder}" "$@"\n',
    )


def archive(java: str) -> Path:
    """Where the classes that this Java reads to start this Spark are kept, for later tests."""
    built = int(Path(java).resolve().stat().st_mtime)
    return cache() / f"spark-{version('pyspark')}-java-{built}.jsa"


def keep_classes(folder: Path) -> None:
    """Make the archive, which halves Java's time to start Spark.

    Whoever is second goes on without it, and so does who can't make it: then Spark only starts as
    it would, and the tests themselves say what is wrong with it.
    """
    if JAVA is None or (classes := archive(JAVA)).exists():
        return
    classes.parent.mkdir(parents=True, exist_ok=True)
    with classes.with_suffix(".lock").open("w") as making:
        try:
            fcntl.flock(making, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        unfinished = classes.with_suffix(".new")
        # Not of the Java that is asked for its version, nor of the one that makes Spark's command.
        script = (
            'case "$*" in *launcher.Main*|*-version) ;;\n'
            f'*) set -- "-XX:ArchiveClassesAtExit={unfinished}" {UNFIT} "$@" ;; esac\n'
            f'exec "{JAVA}" {SHORT_LIVED} "$@"\n'
        )
        environment = os.environ | _home(folder / "archive", script)
        # Its output's end is Java's.
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                [sys.executable, "-c", STARTS_SPARK],
                env=environment, check=True, capture_output=True, timeout=PATIENCE,
            )  # fmt: skip
            unfinished.rename(classes)


def _home(folder: Path, script: str) -> dict[str, str]:
    program = folder / "java-home" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}")
    program.chmod(0o755)
    return {"JAVA_HOME": str(program.parent.parent)}
