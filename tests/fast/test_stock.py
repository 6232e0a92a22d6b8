"""Servers of one's own in place of the wheels': which ones, and what is no such folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.embedded import stock
from demo.embedded.failures import NeverStarts
from tests.support.folders import short_folder


@pytest.fixture
def machine() -> Iterator[Path]:
    """A folder for one."""
    with short_folder() as folder:
        yield folder


def add(folder: Path, *programs: str) -> None:
    folder.mkdir(0o755, parents=True, exist_ok=True)
    for program in programs:
        (folder / program).touch(0o755)


@pytest.mark.parametrize(
    ("setting", "there", "lacks"),
    [
        (stock.POSTGRES, [], "no postgres in it"),
        (stock.REDIS, ["redis-cli"], "no valkey-server and no redis-server in it"),
    ],
)
def test_a_folder_that_lacks_a_program_is_refused(
    machine: Path, monkeypatch: pytest.MonkeyPatch, setting: str, there: list[str], lacks: str
) -> None:
    add(machine / "mine", *there)
    monkeypatch.setenv(setting, str(machine / "mine"))
    with pytest.raises(NeverStarts, match=f"^{setting}={machine}/mine is refused: .*{lacks}$"):
        stock.require()


def test_a_program_that_nobody_may_run_is_none(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(machine / "mine", "redis-server")
    (machine / "mine/redis-server").chmod(0o600)
    monkeypatch.setenv("REDIS_PROGRAMS", str(machine / "mine"))
    with pytest.raises(NeverStarts, match=r"no redis-server in it$"):
        stock.require()
