"""Queries of the log: ranges in both directions, positions after double sends, what is pending."""

import json
from typing import Any

import pytest
import redis

from consumers.receipts.group import Group
from tests.support.clusters import each_stream_server
from tests.support.entries import fields, named
from tests.support.world import World, eventually
from unified_log.log import START, Entry, Invalid, Log, Staged, decode, pending
from unified_log.log.lines import as_json
from unified_log.log.places import GREATEST, Id, Place, Position, between, parse
from unified_log.log.queries import PAGE, Query, selected
from unified_log.log.replies import LARGEST
from unified_log.terms import Term

TERM = Term("0123456789abcdef", 0)
FOREIGN = "f" * 16
GREATEST_ID = "{}-{}".format(*GREATEST)


def found(
    log: Log, start: Place | str | None = None, end: Place | str | None = None, **more: Any
) -> list[str]:
    """The ids of the entries between two places. No page of them is larger than a page."""
    first, last = (parse(place) if isinstance(place, str) else place for place in (start, end))
    pages = list(selected(log, Query(between(first, last, log.clock), **more)))
    assert all(0 < len(page) <= PAGE for page in pages)
    return [entry.redis_id for page in pages for entry in page]


def send(log: Log, *positions: int, term: str = TERM.name) -> None:
    """As a leader does, but whatever the positions are: a batch, or one that is sent again."""
    for position in positions:
        kind = "ride.create" if position % 2 else "rating.create"
        log.redis.xadd(log.name, named(position, "{}", position - 1, term, kind))


@each_stream_server
def test_a_range_of_ids_is_found_in_both_directions_in_bounded_replies(world: World) -> None:
    log = world.log()
    assert found(log) == found(log, reverse=True) == found(log, "5", "6") == []
    records = [Staged(number, "ride.create", "{}") for number in range(1, 2 * PAGE + 501)]
    log.append(records, 0, TERM)
    log.redis.xadd(log.name, {"x": 1}, id=GREATEST_ID)
    ids = [entry.redis_id for entry in log.between("-", "+", 10_000)]
    assert len(ids) == 2 * PAGE + 501
    for first, last in ((0, -1), (1, PAGE), (7, 7), (PAGE - 1, 2 * PAGE), (-1, -1)):
        places = Id(_numbers(ids[first])), Id(_numbers(ids[last]))
        wanted = ids[first:] if last == -1 else ids[first : last + 1]
        for reverse in (False, True):
            in_order = wanted[::-1] if reverse else wanted
            assert found(log, *places, reverse=reverse) == in_order
            for count in (1, PAGE, PAGE + 1, 10_000):
                assert found(log, *places, reverse=reverse, count=count) == in_order[:count]
    assert found(log) == ids
    assert found(log, reverse=True) == ids[::-1]
    assert found(log, "0-0", "0-0") == found(log, Id((0, 0)), parse("1970-01-01T00:00:00Z")) == []


def _numbers(redis_id: str) -> tuple[int, int]:
    milliseconds, number = redis_id.split("-")
    return int(milliseconds), int(number)


def test_a_time_that_ends_a_range_is_not_in_it(world: World) -> None:
    log = world.log()
    noon = 985_780_800_000
    ids = [f"{noon - 1}-9", f"{noon}-0", f"{noon}-1", f"{noon + 60_000}-0"]
    for redis_id in ids:
        log.redis.xadd(log.name, {"n": 1}, id=redis_id)
    noon_, later = "2001-03-28T12:00:00Z", "2001-03-28T12:01:00Z"
    assert found(log, noon_, later) == found(log, noon_, "12:01") == ids[1:3]
    assert found(log, None, noon_) == ids[:1]
    assert found(log, later) == ids[3:]
    assert found(log, "0s") == []
    assert found(log, "99999d", "0s", reverse=True) == ids[::-1]
    hour = 3_600_000
    ids += [f"{log.clock() - hour // 2}-0", f"{log.clock() + hour}-0"]
    for redis_id in ids[-2:]:
        log.redis.xadd(log.name, {"n": 1}, id=redis_id)
    assert found(log, "1h") == ids[-2:]
    assert found(log, "0s") == ids[-1:]  # Redis' clock is behind it, and nothing is waited for


@each_stream_server
def test_every_entry_of_a_position_is_found_however_often_it_was_sent(world: World) -> None:
    """Also after a restore of Postgres, and among others' entries, and those without a position."""
    log = world.log()
    send(log, 1, 2, 3, 4, 5)
    send(log, 3, 4, 5)
    send(log, 3, 4, 5, 6)
    log.redis.xadd(log.name, {"x": b"\xff"})
    send(log, 2, 9, term=FOREIGN)
    send(log, 7, 8, 9)
    log.redis.xadd(log.name, named(5, "{}", 9, TERM.name))  # no record: it would come before itself
    send(log, 4, 5, 10)  # after a restore
    entries = log.read(START, 1000)
    for lowest in range(12):
        for highest in range(lowest, 12):
            wanted = [each.redis_id for each in entries if lowest <= position(each) <= highest]
            at = Position(lowest), Position(highest)
            assert found(log, *at) == wanted
            assert found(log, *at, reverse=True, count=3) == wanted[::-1][:3]
    assert found(log, "5") == [each.redis_id for each in entries if position(each) >= 5]
    assert len(found(log, "5", "5")) == 4
    rides = [each.redis_id for each in entries if position(each) % 2 == 1]
    assert found(log, type=b"ride.create") == rides
    middle = entries[8].redis_id
    assert found(log, "4", Id(_numbers(middle))) == [
        each.redis_id for each in entries[:9] if position(each) >= 4
    ]
    assert found(log, type=b"none") == found(log, "11") == []


def position(entry: Entry) -> int:
    """Of no record: one that nobody asks for."""
    try:
        return decode(entry.fields).id
    except Invalid:
        return -2


def test_a_huge_entry_is_shown_cut_and_those_beside_it_whole(world: World) -> None:
    log = world.log()
    data = '{"id": 5, "note": "%s"}' % ("x" * 5000)
    record, junk = fields(5, data, 4, TERM.name), [b"junk", b"j" * (LARGEST + 1)]
    ids = [log.command("XADD", log.name, "*", *each).decode() for each in (record, junk, record)]
    for reverse in (False, True):
        query = Query(between(None, None, log.clock), reverse=reverse)
        page = [entry for page in selected(log, query) for entry in page]
        assert [entry.redis_id for entry in page] == (ids[::-1] if reverse else ids)
        one, cut, other = (json.loads(as_json(entry)) for entry in page)
        assert one["data"] == other["data"] == json.loads(data)
        assert cut["fields"][1].endswith(f"... ({LARGEST + 1} bytes)")
        assert len(as_json(page[1])) < 1000


def test_what_is_appended_meanwhile_is_left_out(world: World) -> None:
    log = world.log()
    send(log, *range(1, 9))
    ids = [entry.redis_id for entry in log.read(START, 10)]
    for reverse in (False, True):
        pages = selected(log, Query(between(None, None, log.clock), reverse=reverse))
        begun = next(pages)
        send(log, 9, 10)
        shown = [entry.redis_id for page in (begun, *pages) for entry in page]
        assert shown == (ids[::-1] if reverse else ids)
        log.trim_before(ids[0], exactly=True)
        ids = [entry.redis_id for entry in log.read(START, 100)]


@each_stream_server
def test_the_server_never_builds_a_reply_of_many_huge_entries(world: World) -> None:
    log = world.log()
    for position in range(1, 7):
        log.redis.xadd(log.name, named(position, b"x" * (LARGEST // 2), position - 1, TERM.name))
    ids = [entry.redis_id for entry in log.between("-", "+", 2)]
    limit, name = LARGEST * 5 // 4, "client-output-buffer-limit"
    before = log.command("CONFIG", "GET", name)[1]
    log.command("CONFIG", "SET", name, f"normal {limit} 0 0")  # a client beyond it is cut off
    try:
        for more in ({}, {"reverse": True}, {"type": b"none"}, {"follow": True, "count": 6}):
            shown = found(log, ids[0], **more)
            assert len(shown) == (0 if "type" in more else 6)
    finally:
        log.command("CONFIG", "SET", name, before)


def test_few_entries_are_asked_for_where_few_are_wanted(world: World) -> None:
    log = world.log()
    size = 100_000
    for position in range(1, 101):
        log.redis.xadd(log.name, named(position, b"x" * size, position - 1, TERM.name))

    def sent() -> int:
        return int(log.info("stats")["total_net_output_bytes"])

    for reverse in (False, True):
        for count in (1, 10, 20):
            before = sent()
            assert len(found(log, reverse=reverse, count=count)) == count
            assert sent() - before < (2 * count + 2) * size  # 2: XINFO's first and last


def test_what_is_followed_begins_where_it_is_asked_to_and_ends_with_its_count(world: World) -> None:
    log = world.log()
    send(log, 1, 2, 3)
    ids = [entry.redis_id for entry in log.read(START, 10)]
    assert found(log, "0-0", follow=True, count=3) == ids
    assert found(log, Id(_numbers(ids[1])), follow=True, count=2) == ids[1:]
    assert found(log, "2", follow=True, type=b"rating.create", count=1) == ids[1:2]


def told(log: Log, count: int | None = None) -> tuple[list[str], list[dict[str, Any]]]:
    """What is pending: in words, and from JSON."""
    objects = [json.loads(line) for line in pending.lines(log, count, as_json=True)]
    return list(pending.lines(log, count, as_json=False)), objects


@each_stream_server
def test_what_is_pending_has_an_owner_an_age_and_deliveries(world: World) -> None:
    log = world.log()
    assert told(log) == ([f"there is no stream {log.name}"], [])
    log.append([Staged(number, "ride.create", "{}") for number in range(1, 2 * PAGE + 2)], 0, TERM)
    assert told(log) == ([f"{log.name} has no consumer group"], [])
    ids = [entry.redis_id for entry in log.between("-", "+", 10_000)]
    one, two = (Group(log, "workers", member) for member in ("one", "two\n\x1b"))
    one.make()
    Group(log, "idle", "none").make()
    one.read(2 * PAGE)
    two.read(10)
    two.acknowledge(ids[:3])
    log.command("XCLAIM", log.name, "workers", two.member, 0, ids[5], "IDLE", 90_000)
    lines, objects = told(log)
    groups = [each for each in objects if "members" in each]
    members = [each for each in objects if "member" in each and "redis_id" not in each]
    entries = [each for each in objects if "redis_id" in each]
    assert [(each["group"], each["members"], each["pending"]) for each in groups] == [
        ("idle", 0, 0),
        ("workers", 2, 2 * PAGE - 2),
    ]
    assert [each["last_delivered"] for each in groups] == [START, ids[-1]]
    assert [(each["member"], each["pending"]) for each in members] == [
        ("one", 2 * PAGE - 4),
        (r"two\n\x1b", 2),
    ]
    assert [each["redis_id"] for each in entries] == ids[3:]
    assert {
        (each["member"], each["deliveries"]) for each in entries if each["redis_id"] != ids[5]
    } == {
        ("one", 1),
        (r"two\n\x1b", 1),
    }
    [claimed] = [each for each in entries if each["redis_id"] == ids[5]]
    assert (claimed["member"], claimed["deliveries"]) == (r"two\n\x1b", 2)
    assert 90 <= claimed["idle_seconds"] < 1000
    assert len(lines) == len(objects) == 4 + len(entries)
    assert lines[1] == f"workers  2 members, 1,998 pending, handed out to {ids[-1]}"
    assert lines[3].startswith(r"  two\n\x1b  2 pending, idle for ")
    assert lines[6].endswith(" ago, 2 deliveries")

    def idle() -> float:
        """Of the second member, as Redis tells it."""
        _, facts = log.command("XINFO", "CONSUMERS", log.name, "workers")
        milliseconds: int = dict(zip(facts[::2], facts[1::2], strict=True))[b"idle"]
        return milliseconds / 1000

    eventually(lambda: idle() > 0)
    least, (_, objects), most = idle(), told(log), idle()
    assert least <= objects[3]["idle_seconds"] <= most
    for count in (1, PAGE, 10_000):
        _, first = told(log, count)
        assert [each["redis_id"] for each in first[4:]] == ids[3:][:count]


def test_what_is_pending_in_a_key_that_is_no_stream_is_an_error(world: World) -> None:
    log = world.log()
    log.redis.set(log.name, "no stream")
    with pytest.raises(redis.ResponseError, match="wrong kind of value"):
        told(log)
