"""What is said where the Sentinels don't lead to a primary, and who takes their URL."""

import gc
import re
import socket
import time
from collections.abc import Iterator

import psutil
import pytest
import redis

from demo.embedded import stock
from demo.embedded.stream_servers import STREAM_SERVERS
from lab.chaos.redis_pair import client
from tests.support.looks import first_to_tell
from tests.support.secure import PASSWORD
from tests.support.sentinels import Watched, watched
from tests.support.world import World, eventually
from unified_log.log import Log


@pytest.fixture(scope="module", params=["valkey"] if stock.named(stock.REDIS) else STREAM_SERVERS)
def servers(request: pytest.FixtureRequest) -> Iterator[Watched]:
    with watched(sentinels=2, kind=STREAM_SERVERS[request.param]) as servers:
        for each in (*servers.sentinels, *servers.servers):
            with client(each) as control:
                rights = ["reset", "on", f">{PASSWORD}", "~*", "+@all"]
                control.execute_command("ACL", "SETUSER", "rides", *rights)
        yield servers


def said(url: str) -> str:
    with pytest.raises(redis.ConnectionError) as refused:
        Log(url, "log")
    return re.sub(r"127.0.0.1:\d+", "HOST:PORT", str(refused.value))


def test_a_name_that_no_sentinel_knows_is_told_by_each(servers: Watched) -> None:
    assert said(servers.url(name="other")) == (
        "Redis: no Sentinel names a primary of 'other'"
        " (HOST:PORT: it knows no such name; HOST:PORT: it knows no such name)"
    )


def test_a_sentinel_that_is_away_is_told_with_its_reason() -> None:
    assert said("redis+sentinel://127.0.0.1:1/rides") == (
        "Redis: no Sentinel names a primary of 'rides'"
        " (HOST:PORT: Error 111 connecting to HOST:PORT. Connection refused)"
    )


def test_silent_sentinels_cost_a_second_for_all_of_them() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=20) as silent:
        places = ",".join(8 * [f"127.0.0.1:{silent.getsockname()[1]}"])
        began = time.monotonic()
        assert said(f"redis+sentinel://{places}/rides").count("HOST:PORT: Timeout") == 8
        assert time.monotonic() - began < 7  # not eight


def test_one_sentinel_that_answers_is_enough(servers: Watched) -> None:
    with Log(servers.url().replace("://", "://127.0.0.1:1,"), "log") as log:
        assert log.length() == 0


def test_a_sentinels_wrong_password_is_told_and_not_shown(servers: Watched) -> None:
    wrong = "?sentinel_username=rides&sentinel_password=hunter2"
    told = said(servers.url(options=wrong))
    assert told.count("WRONGPASS invalid username-password pair") == 2
    assert "hunter2" not in told


def test_redis_wrong_password_is_told_and_not_shown(servers: Watched) -> None:
    told = said(servers.url("rides:hunter2@"))
    assert told.startswith("Redis: WRONGPASS invalid username-password pair")
    assert "hunter2" not in told


def test_the_sentinels_and_redis_have_users_of_their_own(servers: Watched) -> None:
    own = f"?sentinel_username=rides&sentinel_password={PASSWORD}"
    with Log(servers.url(f"rides:{PASSWORD}@", options=own), "log") as log:
        assert log.command("ACL", "WHOAMI") == b"rides"


def test_an_attempt_in_vain_leaves_no_connection_behind(servers: Watched) -> None:
    gc.disable()
    try:
        before = psutil.Process().num_fds()
        said(servers.url(name="other"))
        assert psutil.Process().num_fds() == before
    finally:
        gc.enable()


def test_a_server_that_is_a_replica_is_refused(servers: Watched) -> None:
    """A Sentinel may not know yet."""
    primary = servers.primary
    with client(primary) as control:
        control.replicaof("127.0.0.1", "1")
        try:
            told = said(servers.url())
        finally:
            control.replicaof("NO", "ONE")
    assert told == "Redis: HOST:PORT is a replica, but a Sentinel calls it the primary"


def test_a_process_waits_and_says_why(world: World, servers: Watched) -> None:
    reader = world.service("consumers.totals", "consumer0", REDIS_URL=servers.url(name="other"))
    reader.says("no Sentinel names a primary of 'other'")
    with client(servers.sentinels[1]) as sentinel:
        port = servers.ports[servers.servers.index(servers.primary)]
        sentinel.sentinel_monitor("other", "127.0.0.1", port, 1)
    reader.says(f"consumer0 stands at {world.start}")
    told = reader.output.read_text()
    assert told.count("no Sentinel") <= 2  # and again when it lasts
    assert "Traceback" not in told


def test_each_tool_takes_the_url(world: World, servers: Watched) -> None:
    world.take(1)
    through = {"REDIS_URL": servers.url()}
    streamer = world.service("streamer", **through)
    eventually(lambda: world.staged() == 0)
    for command, shows in {
        "unified_log.log": "ride.create",
        "unified_log.log --pending": "",
        "unified_log.log --follow --from=0-0 --count=1": "ride.create",
        "watch.status": "log         1 entry",
    }.items():
        module, *options = command.split()
        status, told = first_to_tell(lambda: world.service(module, *options, **through))  # noqa: B023
        assert shows in told
        # The fleet lacks all but a streamer.
        assert status == (module == "watch.status"), told
    assert streamer.stop() == 0
