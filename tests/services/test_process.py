"""What the processes share: their output, and whom they outlive."""

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from consumers import running
from consumers.checkpoint import Position
from consumers.totals.total import Total
from rocket_rides import fleet
from rocket_rides.database import is_alive
from rocket_rides.process import Stop
from rocket_rides.settings import PROJECT, Settings
from tests.support.honcho import has_a_full_pipe
from tests.support.world import World, drain, eventually

# What a streamer does whose connections to both servers end in the middle of a batch.
LOSE_BOTH = """
import psycopg, sys
from rocket_rides.database import connect
from rocket_rides.process import begin
begin("INFO")
with connect(sys.argv[1], "victim") as victim, psycopg.connect(sys.argv[1]) as other:
    try:
        with victim.transaction():
            other.execute("SELECT pg_terminate_backend(%s)", [victim.info.backend_pid])
            raise ValueError
    except ValueError:
        print("told once")
"""


def test_an_error_on_the_way_out_of_a_transaction_adds_no_lines_of_psycopgs(world: World) -> None:
    said = subprocess.run(
        [sys.executable, "-c", LOSE_BOTH, world.postgres_url],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert said.stdout == "told once\n"


def test_a_consumer_that_hangs_in_a_transaction_is_disconnected_and_begins_again(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By the server, after ten seconds; else whoever waits for the checkpoint waits for ever."""
    assert running.TIMEOUT == "10s"
    monkeypatch.setattr(running, "TIMEOUT", "500ms")
    caplog.set_level(logging.INFO)
    config = Settings(
        database_url=world.postgres_url, redis_url=world.redis.url, stream_name=world.stream
    )
    stop, begun = Stop(), 0

    class HangsOnce(Total):
        def load(self, at: Position) -> None:
            nonlocal begun
            begun += 1
            if begun == 1:
                eventually(lambda: not is_alive(self.connection), "an end of the session")
            super().load(at)
            stop.ask()

    running.run("consumer0", HangsOnce, [], config, stop)
    assert "terminating connection due to idle-in-transaction timeout" in caplog.text
    assert begun > 1


STOP_TIMEOUT = 10
# What `&` and `setsid` come to; the shell lives until its standard input ends.
IN_THE_BACKGROUND = f'setsid {sys.executable} -m consumers consumer0 >"$LOG" & read _'


def test_what_a_shell_has_started_outlives_it_also_below_another_fleets_honcho(
    world: World, tmp_path: Path
) -> None:
    log = tmp_path / "consumer.log"
    given = {
        "DATABASE_URL": world.postgres_url,
        "REDIS_URL": world.redis.url,
        "STREAM_NAME": world.stream,
        "LOG": str(log),
        "HONCHO_PROCESS_NAME": "shell.1",
    }
    streamer = world.streamer()
    with subprocess.Popen(
        ["/bin/sh", "-c", IN_THE_BACKGROUND],
        cwd=PROJECT,
        env={**os.environ, **given},
        stdin=subprocess.PIPE,
    ) as shell:
        [consumer] = eventually(psutil.Process(shell.pid).children)
        try:
            eventually(lambda: log.exists() and "stands at ride 0" in log.read_text())
            shell.communicate()
            assert consumer.ppid() != shell.pid
            looks = time.monotonic() + 4 * fleet.POLL
            while time.monotonic() < looks:
                world.take(1)
                drain(streamer)
                eventually(lambda: world.standing() == world.truth)
        finally:
            consumer.kill()


# What is over at the moment it is told to end, and until then prints more than anybody reads.
OVER_AT_ONCE = """
import os
from rocket_rides.fleet import end_with_honcho
end_with_honcho(lambda: os._exit(0))
while True:
    print("x" * 1000, flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_honchos_fork_ends_too_with_a_process_that_is_over_at_once(tmp_path: Path) -> None:
    program = tmp_path / "over_at_once.py"
    program.write_text(OVER_AT_ONCE)
    (tmp_path / "Procfile").write_text(
        f"process: PYTHONPATH={PROJECT} exec {sys.executable} {program}"
    )
    with subprocess.Popen(
        [sys.executable, "-m", "honcho", "-d", tmp_path, "start"],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as honcho:
        [fork] = eventually(psutil.Process(honcho.pid).children)
        [process] = eventually(fork.children)
        eventually(lambda: str(program) in process.cmdline())
        honcho.send_signal(signal.SIGSTOP)
        eventually(lambda: has_a_full_pipe(fork.pid), "a fork that waits for honcho")
        honcho.kill()
    _, living = psutil.wait_procs([fork, process], STOP_TIMEOUT)
    for left in living:
        left.kill()
    assert not living
