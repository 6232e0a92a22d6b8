"""What a drill takes for done is done: a kill that hits nobody, and who is back at work."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest

from lab.chaos.fleet import STREAMERS
from lab.failover.node import Node
from lab.network import switch
from lab.stage import SESSIONS, Stage
from tests.support.world import World, eventually
from unified_log import database
from unified_log.deadline import Session

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="drills need Linux")


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_a_kill_that_hits_nobody_is_a_failure(tmp_path: Path) -> None:
    servers = tmp_path / "servers"
    servers.mkdir()

    def play() -> None:
        switch()
        node = Node("node", "10.0.0.1", servers)
        node.programs = {"one": ["sleep", "600"]}
        node.start()
        try:
            eventually(lambda: kills(node), "a process to kill")
            with pytest.raises(TimeoutError, match="node runs no sleep that could be killed"):
                node.kill("sleep")
        finally:
            node.end()

    with ThreadPoolExecutor(1) as thread:  # which alone is in the namespaces
        thread.submit(play).result()


def kills(node: Node) -> bool:
    """Whether there was something to kill; it takes a moment until its program runs."""
    with suppress(TimeoutError):
        node.kill("sleep")
        return True
    return False


def test_a_session_that_outlasts_its_process_is_not_the_next_one_at_work(world: World) -> None:
    stage = Stage(world.folder)
    stage.settings["DATABASE_URL"] = world.postgres_url
    name = STREAMERS[0]

    def session() -> closing[Session]:
        return closing(database.connect(world.postgres_url, SESSIONS[name]))

    with session():
        with session():
            assert stage.is_at_work(name)
            before = stage.sessions(name)
            assert not stage.is_at_work(name, before)  # none has ended, and none has come
            with session():
                assert not stage.is_at_work(name, before)
        eventually(lambda: len(stage.sessions(name)) == 1, "the end of one")
        assert not stage.is_at_work(name, before)
        with session():
            assert stage.is_at_work(name, before)
