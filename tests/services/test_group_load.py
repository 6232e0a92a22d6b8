"""The benchmark of ten consumers of one group, with three and for a moment, on a real server."""

from collections.abc import Callable
from typing import Any

import redis

from demo.embedded.servers import Redis
from lab.benchmarks import group_load, members
from lab.benchmarks.group_load import Load
from lab.benchmarks.members import STREAM

LOAD = Load(members=3, entries=500, rate=2_000)


def test_the_members_are_given_each_entry_once_and_acknowledge_all(
    redis_of_kind: Callable[[str], Redis],
) -> None:
    """By our reader and by redis-py, beside entries of a member that is gone."""
    server, gone = redis_of_kind("valkey"), members.COUNT
    url = server.url
    with redis.Redis.from_url(url) as client, group_load.processes(LOAD) as pool:
        group_load.prepare(url, gone)
        for number, reader in enumerate((members.ours, members.bare), 1):
            run = group_load.run(pool, url, server.pid, reader, LOAD)
            assert len(run.from_sent) == len(run.from_due) == LOAD.entries
            assert all(map(int.__le__, run.from_sent, run.from_due)), "sent before it was due"
            group: Any = client.xinfo_groups(STREAM)[0]
            appended: Any = client.xinfo_stream(STREAM)
            assert appended["length"] == gone + number * LOAD.entries
            assert group["last-delivered-id"] == appended["last-generated-id"], "given, to the last"
            assert group["pending"] == gone, "acknowledged"
        client.delete(STREAM, members.OVER)
