"""What a newcomer reads when the fleet is up, and the prompt on its Postgres."""

import re
import subprocess
from pathlib import Path

import httpx

from tests.support.honcho import Fleet, person, told
from tests.support.world import PATIENCE, eventually


def test_what_it_says_once_when_it_is_up_can_be_pasted(fleet: Fleet) -> None:
    said = [line.partition("| ")[2].strip() for line in fleet.output.read_text().splitlines()]
    [curl] = [line for line in said if line.startswith("curl -d")]
    posted = subprocess.run([*curl.split(), "-s"], capture_output=True, text=True)
    assert re.search(r'"distance":\s*539.837', posted.stdout)
    [page] = [line.removeprefix("See it live: ") for line in said if line.startswith("See it ")]
    assert httpx.get(page, timeout=PATIENCE).headers["content-type"].startswith("text/html")
    assert f"curl {fleet.url}/consumers         who has read how far, and the totals" in said
    assert f"In a second terminal, with DATA_DIR={fleet.data}:" in said


def test_psql_is_on_the_postgres_that_the_fleet_uses(fleet: Fleet) -> None:
    asked = ("-XAtc", "SELECT current_database(), name FROM checkpoints ORDER BY name LIMIT 1")
    assert told(fleet, "demo.embedded.psql", *asked) == (0, "rocket_rides|consumer0\n")


def command_line(process: subprocess.Popen[str], program: str) -> str:
    """What everybody sees of the program, once the process has become it."""
    line = Path(f"/proc/{process.pid}/cmdline")
    eventually(lambda: program in line.read_text())
    return line.read_text()


def test_a_password_is_handed_over_where_nobody_else_sees_it(fleet: Fleet) -> None:
    url = fleet.database.replace("//postgres@", "//postgres:s3cret@")
    with person(fleet, "demo.embedded.psql", "-XAt", DATABASE_URL=url) as prompt:
        shown = command_line(prompt, "psql\0--dbname=")
        said, _ = prompt.communicate("\\getenv given PGPASSWORD\n\\echo :given\n", timeout=PATIENCE)
    assert "s3cret" not in shown
    assert said == "s3cret\n"
