"""What is said where no session with Postgres can be opened: each host's own reason, in a line."""

import httpx
import pytest

from api.database import UNREACHABLE, Database, NoConnection
from demo.embedded.welcome import answers
from lab.ports import free_ports
from rocket_rides import revisions
from tests.support.hosts import SECRET, url_of
from tests.support.world import PATIENCE, World, eventually
from unified_log import database
from unified_log.errors import Unavailable


def reasons(url: str) -> str:
    with pytest.raises(Unavailable) as refused:
        database.connect(url, "test")
    return str(refused.value)


def test_each_host_is_named_with_its_own_reason(world: World) -> None:
    """The last one's alone, that it is no standby, would hide that the first one is gone."""
    gone = f"127.0.0.1:{free_ports()}"
    url = url_of(world, gone, target_session_attrs="standby")
    said = reasons(url)
    assert said.startswith(f"Postgres can't be reached: {gone}: Connection refused; /")
    assert said.endswith(": server is not in hot standby mode")
    assert said.count(";") == 1
    assert SECRET not in said


def test_a_usual_mistake_is_told_with_the_place(world: World) -> None:
    for change, said in (
        ({"dbname": "nowhere"}, 'database "nowhere" does not exist'),
        ({"user": "nobody"}, 'role "nobody" does not exist'),
        ({"options": "-c nothing=1"}, 'unrecognized configuration parameter "nothing"'),
        ({"sslmode": "require", "host": "127.0.0.1", "port": "1"}, "Connection refused"),
    ):
        where, _, reason = reasons(url_of(world, **change))[27:].partition(": ")
        assert reason == said
        assert where in ("127.0.0.1:1", f"{world.postgres.sockets}/.s.PGSQL.5432")


def test_a_search_path_that_leads_nowhere_is_not_told_as_a_missing_schema(world: World) -> None:
    """What would be advised then, python -m migrations, would refuse."""
    nowhere = url_of(world, options="-c search_path=nowhere")
    with (
        database.connect(nowhere, "test") as session,
        pytest.raises(Unavailable, match="search_path names no schema that exists"),
    ):
        revisions.require_schema(session)


def test_the_api_logs_the_same_in_one_line(world: World, caplog: pytest.LogCaptureFixture) -> None:
    gone = [f"127.0.0.1:{port}" for port in (free_ports(), free_ports())]
    url = url_of(world, *gone, dbname="nowhere")
    database = Database(world.config(database_url=url), patience=0)
    with pytest.raises(NoConnection, match=UNREACHABLE), database.connect():
        pass
    [line] = caplog.messages
    assert line.startswith(f"Postgres can't be reached: {gone[0]}: Connection refused; {gone[1]}: ")
    assert line.endswith('database "nowhere" does not exist; trying again until it works')
    assert "\n" not in line
    assert "Is the server running" not in line


def test_the_api_logs_the_reason_with_the_first_ride_that_it_can_not_take(world: World) -> None:
    """It does not tell clients, and a server that is just starting up is not complained of."""
    gone = f"127.0.0.1:{free_ports()}"
    port = free_ports()
    url = f"postgresql://postgres:{SECRET}@{gone}/rides"
    api = world.service("api", DATABASE_URL=url, API_PORT=str(port), API_WORKERS="1")
    eventually(lambda: answers(f"127.0.0.1:{port}", "/healthz"))
    answer = httpx.post(f"http://127.0.0.1:{port}/rides", data={"distance": "5"}, timeout=PATIENCE)
    assert answer.json()["detail"] == f"{UNREACHABLE}; the ride was not taken"
    [line] = [line for line in api.output.read_text().splitlines() if "answers 503" in line]
    assert line.endswith(f"the ride was not taken ({gone}: Connection refused)")
