"""A user id without a name, as containers are given: whoever needs a name says so, once.

Only Postgres itself does. The services work, without a home, too, on servers that are named.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from demo.embedded.welcome import answers
from lab.ports import free_ports
from lab.processes import clean_environment
from rocket_rides.settings import PORTS, PROJECT
from tests.support.counting import commands, counting, statements
from tests.support.folders import short_folder
from tests.support.looks import first_to_tell
from tests.support.world import PATIENCE, Service, World, eventually

# In a namespace in which this process' own user has that number.
NAMELESS = ("unshare", "--user", "--map-user=12345", "--map-group=12345")
REFUSAL = (
    "the embedded Postgres can't run as user 12345, who has no name here (no line in /etc/passwd):"
    " run the fleet as a user who has one, or set DATABASE_URL to a server of your own\n"
)

pytestmark = pytest.mark.skipif(
    not shutil.which("unshare") or subprocess.run([*NAMELESS, "true"], check=False).returncode != 0,
    reason="needs user namespaces",
)


def nameless(module: str, *arguments: str, output: Path, **settings: str) -> Service:
    environment = clean_environment() | settings
    del environment["HOME"]
    with output.open("wb") as file:
        process = subprocess.Popen(
            [*NAMELESS, sys.executable, "-m", module, *arguments],
            cwd=PROJECT,
            env=environment,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    return Service(process, output)


@pytest.mark.parametrize("module", ["demo", "demo.embedded"])
def test_the_embedded_postgres_is_refused_in_a_sentence_before_anything_starts(
    module: str, tmp_path: Path
) -> None:
    with short_folder() as folder:
        settings = {"DATA_DIR": str(folder / "data"), "API_PORT": str(free_ports(PORTS))}
        refused = nameless(module, output=tmp_path / "said", **settings)
        try:
            assert refused.ends() == 1
        finally:
            refused.stop()
        assert refused.output.read_text() == REFUSAL
        assert [*folder.iterdir()] == []


@pytest.fixture
def named(world: World) -> Iterator[dict[str, str]]:
    """The settings of servers whose sockets everybody may use."""
    postgres, log = (
        counting(world.postgres.socket, statements),
        counting(world.redis.socket, commands),
    )
    with postgres as (at, _), log as (log_at, _):
        yield world.settings | {
            "DATABASE_URL": f"postgresql://postgres@/{world.stream}?host={at}&port=5432",
            "REDIS_URL": f"unix://{log_at}/redis.sock",
            "API_PORT": str(free_ports(PORTS)),
            "RECEIPT_SECRET": "whsec_cm9ja2V0LXJpZGVzLWRlbW8tb25seS1zZWNyZXQ=",
        }


SERVICES = (
    ("api",),
    ("streamer",),
    ("consumers.totals", "consumer0"),
    ("consumers.rollup",),
    ("consumers.receipts", "one"),
    ("demo.simulator",),
)


def test_the_services_work_on_servers_that_are_named(world: World, named: dict[str, str]) -> None:
    port = named["API_PORT"]
    for module, *arguments in SERVICES:
        output = world.new_output(module)
        world.started(nameless(module, *arguments, output=output, **named))
    eventually(lambda: answers(f"127.0.0.1:{port}", "/readyz"), "a ready API")
    rides = f"http://127.0.0.1:{port}/rides"
    httpx.post(rides, data={"distance": "5"}, timeout=PATIENCE).raise_for_status()
    eventually(lambda: world.value("SELECT count(*) FROM receipts WHERE outcome = 'delivered'") > 0)
    _, shown = first_to_tell(
        lambda: nameless("watch.status", output=world.new_output("status"), **named)
    )
    assert "consumer0" in shown
    for output in world.folder.glob("*.log"):
        assert "Traceback" not in output.read_text()
