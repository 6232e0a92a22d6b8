"""The rights in Redis that users.acl gives each process are enough, and none is idle."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from tests.support.looks import look, said
from tests.support.receipts import Staff
from tests.support.rollup import is_complete
from tests.support.secure import PASSWORD, USERS, let_in
from tests.support.world import World, eventually
from unified_log.log import START, Forbidden, Log
from unified_log.streamer import checks
from unified_log.streamer.upkeep import Alarms

GREATEST_ID = f"{2**64 - 1}-{2**64 - 1}"
ONE_FOR_ALL = "rides"
EACH = USERS.keys() - {ONE_FOR_ALL}


def commands(*users: str) -> set[str]:
    return {word[1:] for user in users for word in USERS[user].split() if word[0] == "+"}


def as_user(world: World, user: str) -> str:
    return world.redis.url.replace("//", f"//{user}:{PASSWORD}@", 1)


@pytest.fixture
def control(world: World) -> Iterator[redis.Redis]:
    """The server's own user, which makes those of the page."""
    with redis.Redis.from_url(world.redis.url, decode_responses=True) as control:
        for user in EACH:
            let_in(control, user, world.stream)
        control.acl_log_reset()
        control.config_resetstat()
        yield control
        control.acl_deluser(*EACH)


def test_no_process_may_read_a_setting(world: World, control: redis.Redis) -> None:
    for user in EACH:
        with Log(as_user(world, user), world.stream) as log:
            for setting in ("requirepass", "masterauth", "appendfsync"):
                with pytest.raises(Forbidden):
                    log.command("CONFIG", "GET", setting)


class Hosted(Log):
    """As hosted servers do, it refuses CONFIG, and not in the words of Redis."""

    def command(self, *words: object) -> Any:
        return super().command(*(["XINFO", "CONFIG"] if words[0] == "CONFIG" else words))


def test_a_refusal_in_a_servers_own_words_keeps_no_streamer_from_leading(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with Hosted(world.redis.url, world.stream) as log:
        Alarms().look(world.connection, log, 0, ())
    assert checks.MAY_NOT_ASK in caplog.messages


def test_what_may_lose_the_log_is_noticed_by_the_streamers_user(
    world: World, control: redis.Redis
) -> None:
    with Log(as_user(world, "streamer"), world.stream) as log:
        assert checks.durability_warnings(world.connection, log) == []
        control.config_set("maxmemory-policy", "allkeys-lru")
        try:
            [said] = checks.durability_warnings(world.connection, log)
        finally:
            control.config_set("maxmemory-policy", "noeviction")
        assert said.startswith("Redis has maxmemory-policy allkeys-lru, not noeviction:")


def test_each_process_has_the_rights_that_it_needs(
    world: World, staff: Staff, control: redis.Redis
) -> None:
    def of(user: str) -> dict[str, str]:
        return {"REDIS_URL": as_user(world, user)}

    def complete() -> bool:
        last, _ = truth = world.truth
        all_decided = staff.outcomes() == last - world.start
        return world.standing() == truth and is_complete(world) and all_decided

    control.script_flush()
    world.take(*[1] * 300)
    streamer = world.service("streamer", **of("streamer"))
    world.service("consumers.totals", "consumer0", **of("consumers.totals"))
    world.service("consumers.rollup", **of("consumers.rollup"))
    worker = {"CLAIM_AFTER": "1", "SWEEP_AFTER": "1", **of("consumers.receipts")}
    # A member that died has left some entries behind.
    eventually(lambda: world.staged() == 0)
    world.log().command("XGROUP", "CREATE", world.stream, staff.group, START)
    given = ["GROUP", staff.group, "dead", "COUNT", 20, "STREAMS", world.stream, ">"]
    world.log().command("XREADGROUP", *given)
    one = staff.service("one", **worker)
    eventually(lambda: complete() and staff.pending == 0)
    assert one.stop() == 0
    staff.service("two", **worker)
    # The streamer starts the log anew, and all others notice.
    world.log().redis.xadd(world.stream, {"n": 1}, id=GREATEST_ID)
    world.take(*[1] * 300)
    eventually(complete)
    facts = look(world, redis_url=of("watch")["REDIS_URL"])
    assert facts.log
    assert facts.log.bytes > 0
    database = said(facts)
    assert database.rollup.dirty_minutes == 0
    assert (database.receipts.pending, database.receipts.workers) == (0, 1)
    length = len(world.log().read(START, 1000))
    for options in (["--reverse", "--from=1d"], ["--follow", "--from=0-0", "--count=1"]):
        assert world.service("unified_log.log", *options, **of("unified_log.log")).ends() == 0
    pending = world.service("unified_log.log", "--pending", **of("unified_log.log"))
    assert pending.ends() == 0
    assert f"{staff.group}  1 member, " in pending.output.read_text()
    tail = world.service("unified_log.log", **of("unified_log.log"))
    assert tail.ends() == 0
    shown = len(tail.output.read_text().splitlines())
    assert length >= shown >= len(world.log().read(START, 1000))  # it is trimmed all the while
    assert shown
    denied = [entry["object"] for entry in control.acl_log()]
    called = {name.removeprefix("cmdstat_") for name in control.info("commandstats")}
    needed, setinfo = commands(*EACH), "client|setinfo"  # redis-py goes on without it
    if not any("|" in name for name in called):  # Redis 6.2 tells of no subcommands
        needed, setinfo = {name.partition("|")[0] for name in needed}, "client"
    # The streamer asks once for what only its log's operator may read.
    assert set(denied) <= {setinfo, "config|get", "config"}
    assert "see to it that it is always" in streamer.output.read_text()
    assert needed <= called
    assert commands(ONE_FOR_ALL) == commands(*EACH)
