"""What the processes share: their output."""

import subprocess
import sys

from tests.world import World

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
