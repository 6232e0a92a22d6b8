"""honcho for this project: `run` becomes the command; `start` says and asks first what it can."""

import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from demo import preflight
from demo.install.environment import HONCHO
from lab.ports import free_ports
from lab.processes import clean_environment
from rocket_rides.settings import PORTS, PROJECT, Settings

PIPE = 4096  # bytes, as few as a pipe can hold
PATIENCE = 30  # seconds; only a broken test waits that long
ELSEWHERE = "postgresql://me:hunter2@db.example/rides"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a Procfile of two processes, of which the second ends by itself."""
    (tmp_path / "Procfile").write_text("noisy: while sleep 0.1; do echo; done\numlaut: echo $A ü\n")
    return tmp_path


@contextmanager
def honcho(
    folder: Path, *arguments: str, output: int = subprocess.PIPE, **environment: str
) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "demo.honcho", "--app-root", str(folder), *arguments],
        cwd=PROJECT,
        env=clean_environment() | environment,
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        pipesize=PIPE,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):  # else a test that has failed would never end
                os.killpg(process.pid, signal.SIGKILL)


def told(folder: Path, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """The exit status, and what it wrote on stdout and on stderr."""
    with honcho(folder, *arguments, output=subprocess.PIPE, **environment) as process:
        said, complained = process.communicate(timeout=PATIENCE)
    return process.returncode, said, complained


def test_run_becomes_the_command_with_what_env_sets(folder: Path) -> None:
    """So every signal is the command's; those that Python ignores are as a shell leaves them."""
    (folder / ".env").write_text("A='it\\'s'\n")
    script = 'echo $$ "$A"; command -v python; kill -PIPE $$'
    with honcho(folder, "run", "--", "sh", "-c", script) as process:
        said, _ = process.communicate(timeout=PATIENCE)
    assert said.splitlines() == [f"{process.pid} it's", str(Path(sys.executable).parent / "python")]
    assert process.returncode == -signal.SIGPIPE


def test_the_commands_of_the_log_take_the_fleets_settings(folder: Path) -> None:
    show = ("run", "sh", "-c", "echo $UNIFIED_LOG_SETTINGS")
    assert told(folder, *show) == (0, "rocket_rides.settings:load\n", "")
    assert told(folder, *show, UNIFIED_LOG_SETTINGS="a:b") == (0, "a:b\n", "")


@pytest.mark.parametrize(
    ("command", "status", "reason"),
    [
        (("no-such-program",), 127, "no-such-program can't be run: No such file or directory"),
        ((str(PROJECT),), 126, f"{PROJECT} can't be run: Permission denied"),
        ((), 1, "honcho run: which command?"),
    ],
)
def test_a_command_that_is_none_is_one_line(
    folder: Path, command: tuple[str, ...], status: int, reason: str
) -> None:
    assert told(folder, "run", *command) == (status, "", f"{reason}\n")


@pytest.mark.parametrize("task", [("run", "true"), ("start",), ("check",)])
def test_no_task_goes_on_with_an_env_that_is_refused(folder: Path, task: tuple[str, ...]) -> None:
    (folder / ".env").write_text("RECEIPT_SECRET: hunter2\n")
    reason = f"{folder}/.env, line 1: NAME=value is expected\n"
    assert told(folder, *task) == (2, "", reason)


HALF_SET = {
    "DATABASE_URL": (ELSEWHERE, 2, "RECEIPT_SECRET is not set", "database rides at db.example"),
    "RECEIPT_URL": ("https://shop.example/", 2, "RECEIPT_SECRET is not set", "embedded"),
    "POSTGRES_PROGRAMS": ("/nowhere", 1, "POSTGRES_PROGRAMS=/nowhere is refused", ""),
    "API_PORT": ("many", 2, "API_PORT=many is refused", ""),
    "PORT": ("many", 1, "honcho start: invalid value for port: 'many'", ""),
}


@pytest.mark.parametrize("name", HALF_SET)
def test_what_is_half_set_is_refused_in_a_line_before_anything_starts(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "Procfile").write_text("receipts0: echo started\n")
    value, status, reason, where = HALF_SET[name]
    fleet = {"DATA_DIR": str(tmp_path), "API_PORT": str(free_ports(PORTS))}
    ended, said, complained = told(tmp_path, "start", **(fleet | {name: value}))
    assert ended == status
    assert "started" not in said
    [line] = complained.splitlines()
    assert line.startswith(reason)
    # A URL may be why, and long forgotten.
    assert (f"Postgres: {where}" in said) == bool(where)


def test_start_says_first_which_servers_it_uses(folder: Path) -> None:
    """A terminal that lacks a letter does not end the fleet."""
    (folder / ".env").write_text(f"DATABASE_URL={ELSEWHERE}\nA=1\n")
    environment = {"PGPORT": "6432", "PYTHONIOENCODING": "ascii", "DATA_DIR": str(folder)}
    status, said, _ = told(folder, "start", "umlaut", **environment)
    lines = [line.partition("| ")[2] for line in said.splitlines()]
    set_in = f"DATABASE_URL in {folder}/.env"
    assert lines[0] == f"Postgres: database rides at db.example port 6432 ({set_in})"
    assert lines[1] == f"Redis: embedded, in {folder}"
    assert lines[2].startswith("umlaut.1 started")
    ends = "umlaut.1 ended, and all others with it; started again, the fleet goes on where it was"
    assert lines[3:] == ["1 ?", "umlaut.1 stopped (rc=0)", ends]
    assert status == 0


def test_the_last_line_names_the_process_that_was_killed(folder: Path) -> None:
    (folder / "Procfile").write_text("calm: exec sleep 60\nshot: kill -9 $$\n")
    status, said, _ = told(folder, "start", "calm", "shot", DATA_DIR=str(folder))
    assert status == 256 - signal.SIGKILL
    assert said.splitlines()[-1].endswith(
        "| shot.1 was killed, and all others with it; started again, the fleet goes on where it was"
    )


@pytest.mark.parametrize("zone", ["XXX24", "XXX-24", "Foo/Bar", "CET-1CEST,M3.5.0,M10.5.0/3"])
def test_a_fleet_starts_in_every_time_zone(folder: Path, zone: str) -> None:
    """POSIX knows of offsets that Python's datetime doesn't."""
    status, said, complained = told(folder, "start", "umlaut", TZ=zone, DATA_DIR=str(folder))
    assert (status, complained) == (0, "")
    assert ("it means UTC" in said) == zone.startswith("XXX")


def test_export_has_each_value_that_env_sets(folder: Path) -> None:
    """As python-dotenv reads it; honcho's own parser would lose some, and alter others."""
    (folder / ".env").write_text("export A='it\\'s #1'\nB=\nC=\"a b\"# c\nD=a;b&c\n")
    units = folder / "units"
    status, _, complained = told(folder, "export", "--app", "rides", "systemd", str(units))
    assert status == 0, complained
    [unit] = units.glob("rides-umlaut*.service")
    lines = map(shlex.split, unit.read_text().splitlines())
    found = [line[0].removeprefix("Environment=") for line in lines if line]
    assert {"A=it's #1", "B=", "C=a b", "D=a;b&c"} <= {*found}


def test_export_refuses_a_value_that_it_would_alter(folder: Path) -> None:
    (folder / ".env").write_text("A='C:\\\\new'\nB=1\n")
    said = told(folder, "export", "systemd", str(folder / "units"))
    assert said == (1, "", "honcho export: A can't be exported unaltered\n")
    assert not (folder / "units").exists()


def test_the_launcher_works_from_any_folder_and_by_any_name(folder: Path) -> None:
    """Of a Procfile elsewhere, too, whose commands are run in its folder."""
    launcher = folder / "a b" / ".venv" / "bin" / "honcho"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(HONCHO)
    launcher.chmod(0o755)
    (folder / "link").symlink_to(launcher)
    (folder / "a b" / "docs").mkdir()
    for name in ("demo", "rocket_rides", "unified_log"):
        (folder / "a b" / name).symlink_to(PROJECT / name)
    (folder / "Procfile").write_text("here: pwd\n")
    python = launcher.with_name("python")
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    given = clean_environment() | {"DATA_DIR": str(folder)}
    for program, where in (
        ("../.venv/bin/honcho", launcher.parents[2] / "docs"),
        (".venv/bin/honcho", launcher.parents[2]),
        ("./link", folder),
    ):
        command = [program, "--app-root", str(folder), "start", "here"]
        said = subprocess.check_output(command, cwd=where, env=given, text=True)
        assert any(line.endswith(f"| {folder}") for line in said.splitlines()), said


def test_a_process_that_there_is_not_is_one_line(folder: Path) -> None:
    status, said, complained = told(folder, "start", "umlaut", "nobody")
    assert (status, said) == (1, "")
    assert complained == f"{folder}/Procfile has no process 'nobody'\n"


def test_a_fleet_ends_when_nobody_reads_its_lines_any_more(folder: Path) -> None:
    """As in `make fleet | head`."""
    with honcho(folder, "start", "noisy") as process:
        assert process.stdout
        assert any("noisy.1 started" in line for line in process.stdout)
        process.stdout.close()
        assert process.wait(PATIENCE) == 128 + signal.SIGTERM
        assert process.stderr
        assert process.stderr.read() == ""


def test_a_fleet_ends_when_its_terminal_is_gone(folder: Path) -> None:
    terminal, inside = pty.openpty()
    with honcho(folder, "start", "noisy", output=inside) as process:
        os.close(inside)
        said = b""
        while b"noisy.1 started" not in said:
            said += os.read(terminal, 100)
        os.close(terminal)
        assert process.wait(PATIENCE) == 128 + signal.SIGTERM
        assert process.stderr
        assert process.stderr.read() == ""


def test_a_fleet_ends_when_told_to_while_its_reader_pauses(folder: Path) -> None:
    """As in `make fleet | less`: it waits for room in the pipe when the signal comes."""
    written = folder / "written"
    script = f"while sleep 0.01; do printf '%3000s\\n' x; echo >> {written}; done"
    (folder / "Procfile").write_text(f"noisy: {script}\n")
    with honcho(folder, "start", "noisy", PYTHONUNBUFFERED="") as process:
        while not written.exists() or written.stat().st_size < 50:  # a few lines fill the pipe
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGINT


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("postgresql://a,b:6000/d", "database d at a port 5432 or b port 6000"),
        ("postgresql://u:hunter2@/d?host=/run/x", "database d at /run/x port 5432"),
        ("postgresql://u:hunter2@h?hostaddr=10.0.0.1", "database u at 10.0.0.1 port 5432"),
    ],
)
def test_a_postgres_is_named_as_libpq_finds_it(
    url: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in os.environ.keys() & {"PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER"}:
        monkeypatch.delenv(name)
    named = preflight.servers(Settings(database_url=url), {})
    assert named[0] == f"Postgres: {where} (DATABASE_URL in the environment)"


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("redis://:hunter2@h", "database 0 at h port 6379"),
        ("rediss://u:hunter2@[::1]:7000/3", "database 3 at ::1 port 7000"),
        ("unix:///run/redis.sock?db=2", "database 2 at /run/redis.sock"),
        (
            "redis+sentinel://u:hunter2@a:1,b/log/3?sentinel_password=hunter2",
            "database 3 of the primary of log, as Sentinel says at a port 1 or b port 26379",
        ),
    ],
)
def test_a_redis_is_named_as_its_client_finds_it(url: str, where: str) -> None:
    named = preflight.servers(Settings(redis_url=url), {})
    assert named[1] == f"Redis: {where} (REDIS_URL in the environment)"
