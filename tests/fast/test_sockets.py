"""The embedded servers' sockets: where nobody cleans up, and where every client finds them."""

import os
import pwd
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.embedded import sockets
from demo.embedded.account import Account
from demo.embedded.failures import NeverStarts
from demo.embedded.sockets import Sockets
from rocket_rides import socket_folder
from rocket_rides.settings import Settings, load
from tests.support.folders import short_folder
from unified_log.errors import Refused

SELF = Account(os.geteuid(), os.getegid())
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")


def long(folder: Path) -> Path:
    """A data folder whose sockets' paths would be a byte too long."""
    room = socket_folder.LONGEST_PATH - len(f"{folder}//run{socket_folder.LONGEST_NAME}")
    return folder / ("x" * (room + 1))


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A plain user's folder for running programs, as the system has it."""
    with short_folder() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
        if os.geteuid() == 0:  # which has another
            monkeypatch.setattr(os, "geteuid", lambda: 12345)
        yield folder


def test_they_are_in_the_data_folder_as_far_as_a_path_goes() -> None:
    with short_folder() as folder:
        data = Path(str(long(folder))[:-1])
        data.mkdir()
        with Sockets(data, SELF) as made, socket.socket(socket.AF_UNIX) as server:
            assert Settings(data_dir=data).socket_dir == made.folder == data / "run"
            server.bind(f"{made.folder}{socket_folder.LONGEST_NAME}")
        assert not made.folder.exists()


def test_beyond_that_they_are_where_running_programs_have_theirs(running: Path) -> None:
    data = long(running)
    name = socket_folder.name(data)
    assert Settings(data_dir=data).socket_dir == running / name


@pytest.mark.parametrize("name", ["a,b", 'a"b', "a\nb", os.fsdecode(b"\xfc")])
def test_where_a_path_would_be_read_as_several_or_as_another_they_are_elsewhere(
    name: str, running: Path
) -> None:
    data = running / name
    assert Settings(data_dir=data).socket_dir == running / socket_folder.name(data)


def test_a_folder_that_goes_with_the_users_sessions_holds_none_of_a_fleet_that_stays(
    running: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_folder, "OF_SESSIONS", running.parent)
    monkeypatch.setattr(socket_folder, "LINGERING", running)
    data = long(running)
    me = pwd.getpwuid(0)
    monkeypatch.setattr(pwd, "getpwuid", lambda _user: me)
    assert Settings(data_dir=data).socket_dir.parent == socket_folder.LAST_RESORT
    (running / me.pw_name).touch()
    assert Settings(data_dir=data).socket_dir.parent == running


def test_a_folder_for_running_programs_that_was_removed_is_made_again(
    running: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = running / "programs"
    programs.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(programs))
    data = long(running)
    data.mkdir()
    with Sockets(data, SELF) as made:
        assert made.folder.parent == programs
        shutil.rmtree(programs)
        made.keep()
        SELF.make_private(made.folder)  # as a server's start does
        assert Settings(data_dir=data).socket_dir == made.folder


@pytest.mark.parametrize("name", ["fits", "a,b"])
def test_a_copied_link_does_not_lead_to_the_originals_sockets(name: str, running: Path) -> None:
    data, copy = running / "original,", running / name
    data.mkdir()
    with Sockets(data, SELF) as original:
        copy.mkdir()
        (copy / "run").symlink_to((data / "run").readlink())
        there = original.folder.resolve()
        assert Settings(data_dir=copy).socket_dir.resolve() != there
        with Sockets(copy, SELF) as made:
            assert made.folder.resolve() != there
            assert Settings(data_dir=copy).socket_dir == made.folder
        assert there.exists()


@pytest.mark.parametrize("given", ["", "relative", "/nowhere"])
def test_without_such_a_folder_they_are_in_tmp(
    given: str, running: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", given)
    data = long(running)
    assert Settings(data_dir=data).socket_dir == Path("/tmp", socket_folder.name(data))  # noqa: S108


def test_a_second_terminal_finds_them_whatever_its_own_folder_is(
    running: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = long(running)
    data.mkdir()
    with Sockets(data, SELF) as made:
        monkeypatch.delenv("XDG_RUNTIME_DIR")
        assert Settings(data_dir=data).socket_dir == made.folder
        assert made.folder.parent == running
    assert Settings(data_dir=data).socket_dir.parent == Path("/tmp")  # noqa: S108


def test_a_data_folder_that_holds_no_sockets_leads_to_one_that_does(
    running: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "holds_sockets", lambda _folder: False)
    data = running / "data"
    (data / "run").mkdir(parents=True)
    (data / "run/left").touch()
    with Sockets(data, SELF) as made, socket.socket(socket.AF_UNIX) as server:
        server.bind(str(made.folder / "socket"))
        assert (Settings(data_dir=data).socket_dir / "socket").is_socket()
        (data / "run").unlink()
        made.keep()
        assert (data / "run/socket").is_socket()
    assert not (data / "run").is_symlink()
    assert not made.folder.exists()


def test_where_nothing_holds_sockets_one_line_says_so(
    running: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "")
    monkeypatch.setattr(socket_folder, "LAST_RESORT", running / "nowhere")
    data = long(running)
    data.mkdir()
    reason = f"no sockets can be made for DATA_DIR={data}: .*nowhere.*; set another DATA_DIR"
    with pytest.raises(NeverStarts, match=reason), Sockets(data, SELF):
        pass


def test_a_folder_that_holds_no_sockets_is_known_by_trying() -> None:
    with short_folder() as folder:
        assert sockets.holds_sockets(folder)
        assert [*folder.iterdir()] == []
    assert not sockets.holds_sockets(Path("/proc"))


@as_root
def test_what_another_user_made_is_refused_by_servers_and_clients_and_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with short_folder() as data:
        theirs = data / "run"
        theirs.mkdir()
        (theirs / "kept").touch()
        os.chown(theirs, 12345, 12345)
        refusal = f"{theirs} belongs to another user, 12345"
        with pytest.raises(NeverStarts, match=f"{refusal}; remove it first"), Sockets(data, SELF):
            pass
        monkeypatch.setenv("DATA_DIR", str(data))
        monkeypatch.delenv("DATABASE_URL", raising=False)
        with pytest.raises(SystemExit) as end:
            load()
        assert (end.value.code, capsys.readouterr().err) == (
            2,
            f"the fleet on {data} is another user's, 12345: run this as that user"
            f" ({theirs} belongs to 12345)\n",
        )
        assert (theirs / "kept").exists()


@as_root
def test_a_client_is_told_whose_fleet_it_is_and_to_remove_only_what_a_stranger_made(
    running: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a plain user, who is 12345 here."""
    monkeypatch.setattr(socket_folder, "trusts", lambda owner: owner == 12345)
    servers = socket_folder.servers_user()
    assert servers
    data = running / "data"
    (data / "run").mkdir(parents=True)
    (data / "lock").touch()
    os.chown(data / "run", servers.pw_uid, servers.pw_gid)
    with pytest.raises(Refused) as refusal:
        _ = Settings(data_dir=data).postgres_url
    assert f"the fleet on {data} is another user's, root: run this as that" in str(refusal.value)
    assert "remove" not in str(refusal.value)
    monkeypatch.setattr(socket_folder, "LAST_RESORT", data)
    os.chown(data / "run", 23456, 23456)
    with pytest.raises(Refused, match=r"another user, 23456, who may listen.*: remove it first"):
        _ = Settings(data_dir=data).log_url
