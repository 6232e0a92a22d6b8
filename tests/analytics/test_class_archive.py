"""Spark's Java starts from an archive of its classes, and says nothing of it."""

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analytics.java import ARCHIVE, OPTIONS, use_archive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_run_uses_the_archive(spark: "SparkSession") -> None:
    """Java maps it into its memory only if it is from this very Java and these very jars."""
    java = spark.sparkContext._jvm.java.lang.ProcessHandle.current()  # type: ignore[union-attr]
    assert str(ARCHIVE.resolve()) in Path(f"/proc/{java.pid()}/maps").read_text()


def test_an_archive_that_does_not_fit_is_ignored_without_a_word(
    java: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_TOOL_OPTIONS")
    other = tmp_path / "spark.jsa"
    other.write_bytes(b"of another Java")
    monkeypatch.setattr("analytics.java.ARCHIVE", other)
    monkeypatch.setenv(OPTIONS, "")
    use_archive()
    command = ["java", "-XX:-UsePerfData", *os.environ[OPTIONS].split(), "-version"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "archive" not in (ended.stdout + ended.stderr).lower()
