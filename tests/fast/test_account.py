"""What root gives to the servers' account is what it has looked at, whenever it is swapped."""

import os
import signal
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from demo.embedded.account import Account
from demo.embedded.failures import NeverStarts
from demo.embedded.spawn import spawn

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
