"""Spark's Java starts from an archive of its classes, and says nothing of it."""

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from analytics.java import ARCHIVE, OPTIONS, use_archive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = "org.apache.spark.deploy.SparkSubmit"
SHARED = "source: shared objects file (top)"  # "top" is this archive; Java has one of its own


def test_a_run_uses_the_archive(spark: "SparkSession") -> None:
    java = spark.sparkContext._jvm.java.lang.management.ManagementFactory  # type: ignore[union-attr]
    assert f"-XX:SharedArchiveFile={ARCHIVE}" in java.getRuntimeMXBean().getInputArguments()


def test_most_classes_come_from_the_archive(java: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_TOOL_OPTIONS")
    loaded = _submit(monkeypatch, "-Xlog:class+load:stdout").stdout.splitlines()
    assert sum(SHARED in line for line in loaded) > len(loaded) / 4


def test_an_archive_that_does_not_fit_is_ignored_without_a_word(
    java: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_TOOL_OPTIONS")
    other = tmp_path / "spark.jsa"
    other.write_bytes(b"of another Java")
    monkeypatch.setattr("analytics.java.ARCHIVE", other)
    ended = _submit(monkeypatch)
    assert ended.returncode == 0
    assert "archive" not in (ended.stdout + ended.stderr).lower()


def _submit(monkeypatch: pytest.MonkeyPatch, *options: str) -> "subprocess.CompletedProcess[str]":
    """Start Spark's Java as a run does, to print its version."""
    monkeypatch.setenv(OPTIONS, "")
    use_archive()
    spark = Path(pyspark.__file__).parent
    return subprocess.run(
        [
            spark / "bin" / "spark-submit",
            *[f"--driver-java-options={o}" for o in options],
            "--version",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
