"""What root gives to the servers' account is what it has looked at, whenever it is swapped."""

import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import demo.embedded.account
from demo.embedded.account import Account
from demo.embedded.failures import NeverStarts
from demo.embedded.spawn import spawn
from rocket_rides import socket_folder
from tests.support.folders import short_folder

SELF = Account(os.geteuid(), os.getegid())
OTHER = Account(12345, 12345)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")


class Attacker:
    """Does something once, before this process does what is named as Python's audit names it."""

    def __init__(self) -> None:
        self.moment = ""
        self.attack: Callable[[], None]
        sys.addaudithook(self)  # for good

    def __call__(self, event: str, _: object) -> None:
        if event == self.moment:
            self.moment = ""
            self.attack()


@pytest.fixture(scope="module")
def attacker() -> Attacker:
    return Attacker()


def swapping(folder: Path, victim: Path) -> Callable[[], None]:
    """Put a link to the victim in the folder's place."""

    def swap() -> None:
        if folder.is_dir():
            folder.rename(folder.with_suffix(".away"))
        folder.symlink_to(victim)

    return swap


@pytest.mark.parametrize(
    ("account", "moment"),
    [
        *((SELF, moment) for moment in ("os.mkdir", "os.chmod")),
        *(pytest.param(OTHER, moment, marks=as_root) for moment in ("os.chmod", "os.chown")),
    ],
)
def test_a_folder_that_is_swapped_for_a_link_gives_nothing_else_away(
    account: Account, moment: str, attacker: Attacker, tmp_path: Path
) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "folder"
    victim.mkdir(0o755)
    before = victim.stat()
    attacker.attack, attacker.moment = swapping(folder, victim), moment
    with suppress(NeverStarts):
        account.make_private(folder)
    assert not attacker.moment, "it never came to that"
    after = victim.stat()
    assert (after.st_mode, after.st_uid) == (before.st_mode, before.st_uid)


def logged(log: Path) -> str:
    assert spawn(["/bin/echo", "said"], SELF, log, signal.SIGKILL, session=False).wait() == 0
    return log.read_text()


def test_a_log_is_for_its_owner_only_also_one_that_was_not(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    assert logged(log) == "said\n"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    log.chmod(0o644)
    assert logged(log) == "said\nsaid\n"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def link(log: Path) -> None:
    log.symlink_to("victim")


@pytest.mark.parametrize("plant", [link, os.mkfifo, Path.mkdir])
def test_nothing_is_logged_into_what_is_no_log(
    plant: Callable[[Path], None], tmp_path: Path
) -> None:
    (tmp_path / "victim").write_text("kept")
    log = tmp_path / "server.log"
    plant(log)
    with pytest.raises(NeverStarts, match=r"server\.log is not a plain file; remove it first"):
        logged(log)
    assert (tmp_path / "victim").read_text() == "kept"


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data folder that the servers' user reaches; /var/lib is another one beside it."""
    with short_folder() as place:
        (place / "lib").mkdir()
        monkeypatch.setattr(demo.embedded.account, "FALLBACKS", place / "lib")
        (place / "data").mkdir()
        yield place / "data"


def put_data(folder: Path) -> None:
    (folder / "postgres").mkdir(parents=True)


@as_root
def test_a_relative_path_leads_to_the_same_data(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_data(data)
    monkeypatch.chdir(data.parent)
    assert OTHER.home(Path("data")) == data
    assert [*demo.embedded.account.FALLBACKS.iterdir()] == []


@as_root
def test_an_empty_folder_in_var_lib_does_not_hide_data(data: Path) -> None:
    fallback = demo.embedded.account.FALLBACKS / socket_folder.name(data)
    fallback.mkdir()
    assert OTHER.home(data) == fallback
    put_data(data)
    assert OTHER.home(data) == data


@as_root
def test_of_two_folders_with_data_neither_is_chosen(data: Path) -> None:
    fallback = demo.embedded.account.FALLBACKS / socket_folder.name(data)
    put_data(data)
    put_data(fallback)
    with pytest.raises(NeverStarts, match=f"data both in {data} and in {fallback}"):
        OTHER.home(data)


@as_root
def test_data_that_came_out_of_reach_is_not_replaced_by_none(data: Path) -> None:
    put_data(data)
    data.chmod(0o700)
    with pytest.raises(NeverStarts, match=f"data in {data}, which user 12345 can't reach"):
        OTHER.home(data)
    assert [*demo.embedded.account.FALLBACKS.iterdir()] == []


@as_root
def test_a_folder_in_var_lib_that_was_named_after_a_link_stays_in_use(data: Path) -> None:
    link = data.with_name("link")
    link.symlink_to(data)
    put_data(fallback := demo.embedded.account.FALLBACKS / socket_folder.name_of(str(link)))
    assert OTHER.home(link) == fallback


@as_root
def test_whose_data_is_another_users_is_told_how_to_keep_it(data: Path) -> None:
    os.chown(data, 23456, 23456)
    with pytest.raises(NeverStarts) as refusal:
        OTHER.home(data)
    assert f"`chown 0 {data}` by root keeps what is in it" in str(refusal.value)
    os.chown(data, 0, 0)
    (data / "redis").mkdir()
    os.chown(data / "redis", 23456, 23456)
    with pytest.raises(NeverStarts) as refusal:
        OTHER.make_private(data / "redis")
    assert f"`chown -R 12345:12345 {data}/redis` keeps it" in str(refusal.value)
    assert "remove" not in str(refusal.value)


@as_root
def test_a_log_or_a_data_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.touch()
    for path in (log, tmp_path):
        os.chown(path, 12345, 12345)
    with pytest.raises(NeverStarts, match=r"server\.log belongs to another user, 12345"):
        logged(log)
    with pytest.raises(NeverStarts, match=f"{tmp_path} belongs to another user, 12345"):
        OTHER.home(tmp_path)
