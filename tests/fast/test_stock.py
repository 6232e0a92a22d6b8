"""Servers of one's own in place of the wheels': which ones, and what is no such folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.embedded import stock
from demo.embedded.failures import NeverStarts
from tests.support.folders import short_folder


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """One without servers, and without settings."""
    with short_folder() as folder, monkeypatch.context() as patch:
        patch.setenv("PATH", str(folder / "bin"))
        patch.setattr(stock, "DEBIAN", folder / "postgresql")
        for setting in stock.SERVERS:
            patch.setenv(setting, "")
        yield folder


def add(folder: Path, *programs: str) -> None:
    folder.mkdir(0o755, parents=True, exist_ok=True)
    for program in programs:
        (folder / program).touch(0o755)


def test_the_newest_server_is_taken_and_a_newer_client_alone_is_none(machine: Path) -> None:
    for version in ("9", "14"):
        add(machine / "postgresql" / version / "bin", "postgres", "initdb")
    add(machine / "postgresql/15/bin", "psql")
    add(machine / "bin", "redis-server")
    stock.use()
    assert stock.named(stock.POSTGRES) == machine / "postgresql/14/bin"
    assert stock.named(stock.REDIS) == machine / "bin"


def test_what_is_missing_is_said_unless_a_setting_names_it(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NeverStarts, match=r"`apt install postgresql` .*in POSTGRES_PROGRAMS$"):
        stock.use()
    add(machine / "mine", "valkey-server")
    monkeypatch.setenv("REDIS_PROGRAMS", str(machine / "mine"))
    with pytest.raises(NeverStarts, match=r"`apt install postgresql` .*in POSTGRES_PROGRAMS$"):
        stock.use()


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
