"""What a newcomer does beside a running fleet: reads what it says, opens prompts, breaks it."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
import redis
from redis.connection import parse_url

from chaos.by_hand.running_consumers import running_consumers
from embedded.prompt import options_of_redis_cli
from embedded.welcome import Welcome
from rocket_rides.errors import Unavailable
from rocket_rides.fleet import NAME
from rocket_rides.process import Stop
from rocket_rides.settings import PROJECT, Settings
from tests.support.honcho import Fleet, a_fleet
from tests.support.world import PATIENCE, eventually

PYTHON = Path(sys.executable)


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """With all of the Procfile, for all tests."""
    with a_fleet() as fleet:
        fleet.start()
        eventually(lambda: "The fleet is up" in fleet.output.read_text(), "the welcome")
        yield fleet


def person(fleet: Fleet, *command: str, **settings: str) -> subprocess.Popen[str]:
    """Somebody in a second terminal."""
    return subprocess.Popen(
        [PYTHON, "-m", *command],
        cwd=PROJECT,
        env=os.environ | {"DATABASE_URL": "", "REDIS_URL": ""} | fleet.settings | settings,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,  # as a shell does; in its starter's group Ctrl-Z may be ignored
    )


def told(fleet: Fleet, *command: str, **settings: str) -> tuple[int, str]:
    """The exit status, and what was said."""
    process = person(fleet, *command, **settings)
    said, _ = process.communicate(timeout=PATIENCE * 2)
    return process.returncode, said


def test_what_it_says_once_when_it_is_up_can_be_pasted(fleet: Fleet) -> None:
    said = [line.partition("| ")[2].strip() for line in fleet.output.read_text().splitlines()]
    [curl] = [line for line in said if line.startswith("curl -d")]
    posted = subprocess.run([*curl.split(), "-s"], capture_output=True, text=True)
    assert re.search(r'"distance":\s*539.837', posted.stdout)
    assert f"curl {fleet.url}/consumers      the totals" in said
    assert f"In a second terminal, with DATA_DIR={fleet.data}:" in said
    stands = next(n for n, line in enumerate(said) if "consumer1 stands at" in line)
    assert stands < next(n for n, line in enumerate(said) if "The fleet is up" in line)


def test_a_fleet_that_hangs_is_neither_waited_for_in_the_supervising_thread_nor_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(NAME, "servers.1")
    monkeypatch.setattr("embedded.welcome.GIVE_UP_AFTER", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as api:
        config = Settings.model_construct(api_port=api.getsockname()[1])
        before = set(threading.enumerate())
        Welcome(config).begin(Stop())
        [waiting] = set(threading.enumerate()) - before
        api.accept()
        waiting.join(PATIENCE)
    assert not waiting.is_alive()


def test_the_prompts_are_on_the_servers_that_the_fleet_uses(fleet: Fleet) -> None:
    asked = ("-XAtc", "SELECT current_database(), name FROM checkpoints ORDER BY name LIMIT 1")
    assert told(fleet, "embedded.prompt", "psql", *asked) == (0, "rocket_rides|consumer0\n")
    asked = ("EXISTS", "rocket-rides-log")
    assert told(fleet, "embedded.prompt", "redis-cli", *asked) == (0, "1\n")


@pytest.mark.parametrize(
    ("way", "became"),
    [
        ("freeze", r"Meanwhile \d+ rides? w"),
        ("stop-redis", r"Redis serves again after \d\.\d s"),
        ("wipe-log", r"The log is gone"),
    ],
)
def test_a_fleet_that_was_broken_by_hand_is_seen_to_heal(
    fleet: Fleet, way: str, became: str
) -> None:
    before = len(fleet.output.read_text())
    breaking = person(fleet, "chaos.by_hand", way, "--seconds", "2")
    if way != "stop-redis":
        post_while_frozen(fleet, consumer1(fleet))
    said, _ = breaking.communicate(timeout=PATIENCE * 2)
    assert breaking.returncode == 0, said
    assert re.search(became, said)
    assert "Healed: " in said
    assert said.count("which is the exact sum of the rides") == 2
    if way == "wipe-log":
        healed = "consumer1 healed a gap in the log"
        eventually(lambda: healed in fleet.output.read_text()[before:], healed)


@pytest.mark.parametrize(("way", "rides"), [("freeze", 0), ("wipe-log", 0), ("wipe-log", 1)])
def test_nothing_is_said_to_heal_where_nothing_was_broken(
    fleet: Fleet, way: str, rides: int
) -> None:
    simulator, victim = running(fleet, "simulator"), consumer1(fleet)
    simulator.suspend()
    try:
        eventually(lambda: len(set(fleet.standings().values())) == 1, "idle consumers")
        breaking = person(fleet, "chaos.by_hand", way, "--seconds", "1")
        eventually(lambda: victim.status() == psutil.STATUS_STOPPED, "a frozen consumer")
        for _ in range(rides):  # it may lie in the consumer's socket already
            post(fleet)
        said, _ = breaking.communicate(timeout=PATIENCE)
    finally:
        simulator.resume()
    assert breaking.returncode == 1, said
    assert "nothing was broken, because consumer1 missed too few rides" in said
    assert "Healed" not in said
    assert "The log is gone" not in said


def test_two_processes_of_one_name_are_one_consumer(fleet: Fleet) -> None:
    first = consumer1(fleet)
    with person(fleet, "consumers", "consumer1", HONCHO_PROCESS_NAME="consumer1.2") as second:
        try:
            assert second.stdout
            assert any("stands at" in line for line in second.stdout)
            breaking = person(fleet, "chaos.by_hand", "freeze", "--seconds", "1")
            post_while_frozen(fleet, first)
            said, _ = breaking.communicate(timeout=PATIENCE * 2)
        finally:
            second.kill()
    assert breaking.returncode == 0, said
    assert all(str(process.pid) in said.splitlines()[0] for process in (first, second))
    assert "Healed: " in said


def running(fleet: Fleet, *module: str) -> psutil.Process:
    [process] = [p for p, command in fleet.commands() if command[1:] == ["-m", *module]]
    return process


def consumer1(fleet: Fleet) -> psutil.Process:
    return running(fleet, "consumers", "consumer1")


def post(fleet: Fleet) -> None:
    httpx.post(f"{fleet.url}/rides", data={"distance": "1"}).raise_for_status()


def post_while_frozen(fleet: Fleet, victim: psutil.Process) -> None:
    eventually(lambda: victim.status() == psutil.STATUS_STOPPED, "a frozen consumer")
    while victim.status() == psutil.STATUS_STOPPED:
        post(fleet)


def test_ctrl_z_does_not_leave_a_consumer_frozen(fleet: Fleet) -> None:
    victim = consumer1(fleet)
    breaking = person(fleet, "chaos.by_hand", "freeze", "--seconds", "1")
    eventually(lambda: victim.status() == psutil.STATUS_STOPPED, "a frozen consumer")
    breaking.send_signal(signal.SIGTSTP)
    try:
        eventually(lambda: victim.status() != psutil.STATUS_STOPPED, "a consumer that goes on")
    finally:
        breaking.send_signal(signal.SIGCONT)
        breaking.communicate(timeout=PATIENCE * 2)


@pytest.mark.parametrize("given", ["-1", "0", "nan", "inf", "soon"])
def test_a_duration_that_makes_no_sense_is_refused(fleet: Fleet, given: str) -> None:
    status, said = told(fleet, "chaos.by_hand", "freeze", "--seconds", given)
    assert status == 2
    assert "error: argument --seconds: " in said.splitlines()[-1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_frozen_consumer_goes_on_whatever_becomes_of_who_froze_it(
    fleet: Fleet, number: signal.Signals
) -> None:
    victim = consumer1(fleet)
    breaking = person(fleet, "chaos.by_hand", "freeze")
    eventually(lambda: victim.status() == psutil.STATUS_STOPPED, "a frozen consumer")
    breaking.send_signal(number)
    breaking.communicate(timeout=PATIENCE)
    eventually(lambda: victim.status() != psutil.STATUS_STOPPED, "a consumer that goes on")
    assert breaking.returncode != 0


def test_a_millimetre_is_added_and_said_to_be_a_reconciliations_to_find(fleet: Fleet) -> None:
    status, said = told(fleet, "chaos.by_hand", "change-total")
    assert status == 0
    assert "+0.001 m off" in said
    assert "make reconcile" in said
    _, said = told(fleet, "chaos.by_hand", "freeze")
    assert "consumer1 is already wrong: `make reconcile`" in said
    mend = "UPDATE consumer_states SET total_distance = total_distance - 0.001"
    assert told(fleet, "embedded.prompt", "psql", "-c", f"{mend} WHERE name = 'consumer1'")[0] == 0


GIVEN = {"DATABASE_URL": "postgresql://127.0.0.1:1/x", "REDIS_URL": "redis://127.0.0.1:1"}


@pytest.mark.parametrize("way", ["stop-redis", "wipe-log", "change-total"])
def test_servers_of_ones_own_are_broken_only_on_demand(fleet: Fleet, way: str) -> None:
    status, said = told(fleet, "chaos.by_hand", way, **GIVEN)
    assert status == 1
    assert f"make break ARGS='{way} --any-server'" in said
    assert "no fleet runs on" in told(fleet, "chaos.by_hand", way, "--any-server", **GIVEN)[1]


def test_without_a_fleet_or_a_way_it_says_what_there_is(fleet: Fleet, tmp_path: Path) -> None:
    status, said = told(fleet, "chaos.by_hand", "freeze", DATA_DIR=str(tmp_path))
    assert (status, said.count("\n")) == (1, 1)
    assert said.startswith(f"no fleet runs on {tmp_path}: `make fleet` starts one")
    ways = ("freeze", "stop-redis", "wipe-log", "change-total")
    _, said = told(fleet, "chaos.by_hand")
    assert all(f"make break ARGS={way} " in said for way in ways)
    status, said = told(fleet, "chaos.by_hand", "nonsense")
    assert status == 2
    assert all(way in said for way in ways)


def test_a_fleet_with_other_settings_is_not_this_one(fleet: Fleet) -> None:
    status, said = told(fleet, "chaos.by_hand", "freeze", STREAM_NAME="another")
    assert status == 1
    assert said.startswith("no fleet runs on")


def test_a_fleet_in_another_folder_is_not_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_seen_from(folder: Path) -> bool:
        monkeypatch.chdir(folder)
        try:
            return "elsewhere" in {one.name for one in running_consumers(Settings())}
        except Unavailable:
            return False

    for name in ("DATA_DIR", "DATABASE_URL", "REDIS_URL", "STREAM_NAME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "consumers.py").write_text("input()")
    with subprocess.Popen(
        [PYTHON, "-m", "consumers", "elsewhere"],
        cwd=tmp_path,
        env=os.environ | {NAME: "consumer0.1"},
        stdin=subprocess.PIPE,
    ) as consumer:
        assert is_seen_from(tmp_path)
        assert not is_seen_from(PROJECT)
        consumer.kill()


def command_line(process: subprocess.Popen[str], program: str) -> str:
    """What everybody sees of the program, once the process has become it."""
    line = Path(f"/proc/{process.pid}/cmdline")
    eventually(lambda: program in line.read_text())
    return line.read_text()


def test_passwords_are_handed_over_where_nobody_else_sees_them(fleet: Fleet) -> None:
    config = Settings.model_construct(data_dir=fleet.data)
    with redis.Redis.from_url(config.log_url) as control:
        rights = {"enabled": True, "passwords": ["+s3cret"], "categories": ["+@all"]}
        control.acl_setuser("somebody", keys=["*"], **rights)
    url = config.log_url.replace("//", "//somebody:s3cret@", 1)
    with person(fleet, "embedded.prompt", "redis-cli", REDIS_URL=url) as prompt:
        shown = command_line(prompt, "redis-cli\0-s")
        said, _ = prompt.communicate("ACL WHOAMI\n", timeout=PATIENCE)
    assert "s3cret" not in shown
    assert said == "somebody\n"

    url = config.postgres_url.replace("//postgres@", "//postgres:s3cret@")
    with person(fleet, "embedded.prompt", "psql", "-XAt", DATABASE_URL=url) as prompt:
        shown = command_line(prompt, "psql\0--dbname=")
        said, _ = prompt.communicate("\\getenv given PGPASSWORD\n\\echo :given\n", timeout=PATIENCE)
    assert "s3cret" not in shown
    assert said == "s3cret\n"


def test_a_server_that_is_away_is_said_in_one_line(fleet: Fleet, tmp_path: Path) -> None:
    for program, name in (("psql", "Postgres"), ("redis-cli", "Redis")):
        status, said = told(fleet, "embedded.prompt", program, DATA_DIR=str(tmp_path))
        assert (status, said.count("\n")) == (1, 1)
        assert said.startswith(f"{name} can't be reached: ")
        assert said.endswith("; `make fleet` starts it\n")
        said = told(fleet, "embedded.prompt", program, **GIVEN)[1]
        assert said.count("\n") == 1
        assert "refused" in said
        assert "make fleet" not in said


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("unix:///tmp/redis.sock?db=3", "-s /tmp/redis.sock -n 3"),
        ("redis://me:pw@example.com:7000/2", "-h example.com -p 7000 --user me -n 2"),
        (
            "rediss://:pw@example.com?ssl_ca_certs=/ca.pem&ssl_cert_reqs=none",
            "-h example.com -p 6379 --tls --sni example.com --cacert /ca.pem --insecure -n 0",
        ),
        ("rediss://127.0.0.1:7000", "-h 127.0.0.1 -p 7000 --tls -n 0"),
    ],
)
def test_redis_cli_is_told_of_the_url_without_its_password(url: str, options: str) -> None:
    assert options_of_redis_cli(parse_url(url)) == options.split()  # type: ignore[no-untyped-call]


def test_where_there_is_no_redis_cli_a_small_prompt_does_its_work(fleet: Fleet) -> None:
    url = Settings.model_construct(data_dir=fleet.data).log_url
    code = "import redis, sys; from embedded.redis_prompt import converse;"
    code += "converse(redis.Redis.from_url(sys.argv[1]), [])"
    lines = "EXISTS rocket-rides-log\nECHO 'a b'\nGET none\nNONSENSE\nXRANGE none - +\n"
    lines += "XINFO STREAM rocket-rides-log\n"
    told = subprocess.run(
        [PYTHON, "-c", code, url], input=lines, cwd=PROJECT, capture_output=True, text=True
    )
    said = told.stdout.splitlines()
    assert said[:3] == ["(integer) 1", "a b", "(nil)"]
    assert said[3].startswith("(error) unknown command")
    assert said[4] == "(empty array)"
    assert said[5] == "1) length"
    assert said[6].startswith("2) (integer) ")
