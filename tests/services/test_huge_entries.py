"""Entries of any size, appended by anybody: each costs a reader little memory, and no ride."""

import re
import sys
from pathlib import Path

import pytest

from consumers.receipts.group import MOST, Group
from tests.support.clusters import each_stream_server
from tests.support.looks import answered, look, looking, patient
from tests.support.receipts import Staff
from tests.support.rollup import is_complete
from tests.support.world import PATIENCE, Service, World, catch_up, eventually
from unified_log.log import CUT_LONGER, KEPT, START, Entry, Log
from unified_log.log.lines import in_words
from unified_log.log.replies import LARGEST

MEGABYTE = 1_000_000
SIZES = [1, KEPT, KEPT + 1, CUT_LONGER, CUT_LONGER + 1, 65_536, MEGABYTE, LARGEST, LARGEST + 1]
MOST_KEPT = 16 * KEPT + 100  # bytes of a malformed entry


def junk(log: Log, *sizes: int) -> list[str]:
    """Append an entry of each of these sizes, in bytes; returns the entries' ids."""
    add = ["XADD", log.name, "*", "junk"]
    return [log.command(*add, b"j" * size).decode() for size in sizes]


def size_of(entry: Entry) -> int:
    return sum(map(len, entry.fields))


@each_stream_server
def test_entries_of_every_size_are_read_one_after_the_other(world: World) -> None:
    """What was cut says how large it was. The next reply is the next one's."""
    log = world.log()
    ids = junk(log, *SIZES)
    assert log.last_id() == ids[-1]
    for count in (2, 100):
        found: list[Entry] = []
        while batch := log.read(found[-1].redis_id if found else START, count):
            assert sum(map(size_of, batch)) <= LARGEST + 100
            found += batch
        assert [entry.redis_id for entry in found] == ids
        for entry, size in zip(found, SIZES, strict=True):
            name, value = entry.beginning
            assert (name, value[:400]) == (b"junk", b"j" * min(size, 400))
            assert len(value) == min(size, KEPT)
            assert size <= KEPT or value.endswith(b"... (%d bytes)" % size)
            assert len(in_words(entry)) < 200


def test_an_entry_of_any_number_of_fields_is_cut(world: World) -> None:
    log = world.log()
    words = [b"%d" % number for number in range(150_000)]
    for value in (b"", b"x" * 150):  # read whole, and cut
        log.command("XADD", log.name, "*", *[value + word for word in words])
    for entry in log.read(START, 9):
        assert size_of(entry) < LARGEST
        assert entry.beginning[-1] == b"... (150000 names and values)"
        assert sum(map(len, entry.beginning)) <= MOST_KEPT
        assert len(entry.beginning) == 17


def test_many_entries_of_many_fields_are_cut(world: World) -> None:
    """Once enough of a reply was kept, the rest of it keeps its ids, and little more."""
    log = world.log()
    add = ["XADD", log.name, "*", *[b"x" * 8000] * 100]
    ids = [log.command(*add).decode() for _ in range(40)]
    found = log.read(START, 1000)
    assert [entry.redis_id for entry in found] == ids
    assert sum(map(size_of, found)) < LARGEST + MEGABYTE


@each_stream_server
def test_what_a_dead_member_was_given_is_taken_over_in_parts(world: World) -> None:
    """However large it is: a script has all of what it reads in the server's memory."""
    log = world.log()
    ids = junk(log, *[MEGABYTE] * 10, 2 * LARGEST, 1)
    dead, living = Group(log, "workers", "dead"), Group(log, "workers", "living")
    dead.make()
    dead.read(100)
    taken = []
    while part := living.take_over(100, 0, "dead"):
        taken.append([entry.redis_id for entry in part])
        assert sum(map(size_of, part)) < len(part) * (KEPT + 10)
    assert [redis_id for part in taken for redis_id in part] == ids
    assert len(taken[0]) == MOST // MEGABYTE


def test_whoever_has_read_all_does_not_ask_for_a_huge_entry_again_and_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one command that tells the log's end answers with its last entry."""
    patient(monkeypatch)
    world.send(1)
    consumer, control = world.consumer(), world.log().redis
    junk(world.log(), LARGEST)
    with looking(world) as gatherer:
        assert answered(gatherer).log
        control.config_resetstat()
        catch_up(consumer)
        for _ in range(5):
            assert consumer.run_once().did_nothing
            assert answered(gatherer).log
    calls = world.log().info("commandstats")
    assert sum("xinfo" in command for command in calls) == 0
    assert any("xread" in command for command in calls)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it asks /proc")
def test_huge_entries_are_set_aside_by_every_reader_in_little_memory(
    world: World, staff: Staff
) -> None:
    world.send(1)
    readers = [
        world.service("consumers.totals", "consumer0"),
        world.service("consumers.ratings", "ratings0"),
        world.service("consumers.rollup"),
        staff.service("one"),
    ]

    def all_passed(entries: int) -> bool:
        last, _ = world.truth
        return (
            world.standing() == world.truth
            and is_complete(world)
            and staff.outcomes() == last - world.start
            and staff.pending == 0
            and world.value("SELECT count(*) FROM malformed_entries") == 4 * entries
        )

    eventually(lambda: all_passed(0))
    before = [peak(reader) for reader in readers]
    with Log(world.redis.url, world.stream, PATIENCE) as log:
        junk(log, 100 * MEGABYTE)
    facts = look(world)
    assert facts.log
    assert facts.log.length > 0
    world.send(2)
    eventually(lambda: all_passed(1))
    junk(world.log(), *[MEGABYTE] * 30)
    world.send(3)
    eventually(lambda: all_passed(31))
    grown = [peak(reader) - then for reader, then in zip(readers, before, strict=True)]
    assert max(grown) < 80 * MEGABYTE
    longest = "SELECT max(length(array_to_string(fields, ''))) FROM malformed_entries"
    assert world.value(longest) < 2 * MOST_KEPT  # in hexadecimal digits


def peak(service: Service) -> int:
    """The most memory that the process has had at once, in bytes."""
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s*(\d+) kB", status)
    assert found
    return int(found[1]) * 1024
