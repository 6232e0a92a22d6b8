"""What the processes share: their output, and whom they outlive."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

from rocket_rides import fleet
from rocket_rides.settings import PROJECT
from tests.support.world import World, drain, eventually

# What a streamer does whose connections to both servers end in the middle of a batch.
LOSE_BOTH = """
import psycopg, sys
from rocket_rides.database import connect
from rocket_rides.process import log_to_stdout
log_to_stdout("INFO")
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
