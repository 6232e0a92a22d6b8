"""The rights in Redis that docs/limits.md names for each process are enough, and none is idle."""

import re
from collections.abc import Iterator
from contextlib import closing

import pytest
import redis

from rocket_rides.log import START
from rocket_rides.settings import PROJECT, Settings
from tests.support.api import Api
from tests.support.receipts import Staff
from tests.support.receiver import ACCEPT, refuse
from tests.support.rollup import is_complete
from tests.support.world import World, eventually
from watch.gathering import Gatherer

PAGE = (PROJECT / "docs/limits.md").read_text().replace("\\|", "|")
USERS = re.findall(r"^\| `([a-z_.]+)` \| `(~.+?)` \| `(\+.+?)` \|$", PAGE, re.MULTILINE)
# It needs a Redis that is out of memory.
RARE = {"xlen"}
GREATEST_ID = f"{2**64 - 1}-{2**64 - 1}"


@pytest.fixture
def control(world: World) -> Iterator[redis.Redis]:
    """The server's own user, which makes those of the page."""
    with redis.Redis.from_url(world.redis.url, decode_responses=True) as control:
        for name, keys, commands in USERS:
            ours = [key[1:].replace("rocket-rides-log", world.stream) for key in keys.split()]
            control.acl_setuser(
                name,
                enabled=True,
                passwords=["+secret"],
                keys=ours,
                commands=commands.split(),
                reset=True,
            )
        control.acl_log_reset()
        control.config_resetstat()
        yield control
        control.acl_deluser(*(name for name, _, _ in USERS))


def test_each_process_has_the_rights_that_it_needs(
    world: World, staff: Staff, control: redis.Redis
) -> None:
    def of(user: str) -> dict[str, str]:
        return {"REDIS_URL": world.redis.url.replace("unix://", f"unix://{user}:secret@")}

    def complete() -> bool:
        rides, _ = truth = world.truth
        return world.standing() == truth and is_complete(world) and staff.outcomes() == rides

    control.script_flush()
    staff.receiver.behaviour = lambda request: refuse(503) if request.ride_id <= 20 else ACCEPT
    world.take(*[1] * 300)
    world.service("streamer", **of("streamer"))
    world.service("consumers", "consumer0", **of("consumers"))
    world.service("consumers.rollup", **of("consumers.rollup"))
    worker = {"CLAIM_AFTER": "1", "SWEEP_AFTER": "1", **of("consumers.receipts")}
    one = staff.service("one", **worker)
    api = Api(world, **of("api"))
    eventually(lambda: staff.outcomes() == 280 and staff.pending == 20)
    [own] = [
        each for each in api.client.get("/consumers").json()["consumers"] if each["kind"] == "group"
    ]
    assert (own["rides_behind"], own["pending_entries"]) == (20, 20)
    one.kill()
    staff.service("two", **worker)
    staff.receiver.behaviour = ACCEPT
    eventually(complete)
    eventually(lambda: [member.name for member in staff.group.members()] == ["two"])
    # The streamer starts the log anew, and all others notice.
    world.log().redis.xadd(world.stream, {"n": 1}, id=GREATEST_ID)
    world.take(*[1] * 300)
    eventually(complete)
    looking = Settings(
        database_url=world.postgres_url,
        redis_url=of("watch")["REDIS_URL"],
        stream_name=world.stream,
    )
    with closing(Gatherer(looking)) as gatherer:
        facts = gatherer.gather()
    assert facts.log
    assert facts.log.bytes > 0
    assert facts.database
    assert facts.database.rollup.dirty_minutes == 0
    [seen] = [each for each in facts.database.readers if each.kind == "group"]
    assert (seen.rides_behind, seen.processes) == (0, 1)
    length = len(world.log().read(START, 1000))
    tail = world.service("rocket_rides.log", **of("rocket_rides.log"))
    assert tail.process.wait(30) == 0
    shown = len(tail.output.read_text().splitlines())
    assert length >= shown >= len(world.log().read(START, 1000))  # it is trimmed all the while
    assert shown
    denied = [entry["object"] for entry in control.acl_log()]
    assert set(denied) <= {"client|setinfo"}  # redis-py goes on without it
    called = {name.removeprefix("cmdstat_") for name in control.info("commandstats")}
    named = {command[1:] for _, _, commands in USERS for command in commands.split()}
    assert named - RARE <= called
    api.client.close()
