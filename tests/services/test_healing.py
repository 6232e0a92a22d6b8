"""Healing from the view, and recounting: what every handler has that brings no SQL of its own."""

from collections.abc import Sequence
from itertools import product

import psycopg
import pytest

from consumers.rides import Ride
from tests.support.listing import Listing, hurry, listed, listing
from tests.support.world import World, drain, transaction
from unified_log.errors import Overtaken
from unified_log.readers import healing
from unified_log.readers.gaps import HealedSum
from unified_log.readers.reader import Reader

HEALED = """
    SELECT gaps_healed, records_healed, resends_skipped FROM checkpoints WHERE name = %s
"""


def counts(world: World, name: str = "listing0") -> tuple[int, ...]:
    return world.connection.execute(HEALED, [name]).fetchone() or ()


def test_what_the_log_lacks_comes_from_the_view_in_order_and_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the size of a page, and of a batch: gaps in between, a tail, and what came twice."""
    ids = world.send(*range(1, 21))
    log = world.log()
    for entry in log.read("0-0", 100):
        if int(entry.fields[1]) - ids[0] in {0, 3, 4, 5, 11, 18, 19}:
            log.redis.xdel(log.name, entry.redis_id)
    for page, batch_size in product([1, 2, 1000], [3, 1000]):
        monkeypatch.setattr(healing, "PAGE", page)
        monkeypatch.setattr("unified_log.readers.reader.PAGE", page)
        name = f"pages of {page}, batches of {batch_size}"
        reader = listing(world, batch_size, name)
        took = noted(reader, monkeypatch)
        hurry(reader)
        assert took == ids, name
        assert listed(world, name) == ids
        assert reader.handler.rides == 20
        assert counts(world, name) == (4, 7, 0)


def noted(reader: Reader[Listing], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rides that it takes from now on, in their order."""
    took: list[int] = []
    take = reader.handler.take

    def noting(records: Sequence[Ride]) -> None:
        took.extend(record.id for record in records)
        take(records)

    monkeypatch.setattr(reader.handler, "take", noting)
    return took


@pytest.mark.proves("healed-in-pages")
def test_a_piece_is_never_more_than_a_page(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is a transaction of its own, with its checkpoint; the stream is not read in between."""
    monkeypatch.setattr(healing, "PAGE", 4)
    monkeypatch.setattr("unified_log.readers.reader.PAGE", 4)
    ids = world.send(*range(1, 11))
    world.log().start_anew()
    ids += world.send(11)
    reader = listing(world)
    pieces, positions = [], []
    while reader.at.position < ids[-1]:
        done = reader.run_once()
        pieces.append(HealedSum.of(done.healed))
        positions.append(reader.at.position)
    assert positions == [ids[3], ids[7], ids[9], ids[10]]
    assert pieces == [(0, 4), (0, 4), (1, 2), (0, 0)]
    assert listed(world) == ids


def test_what_is_healed_and_read_is_no_more_than_a_batch(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = world.send(1, 2, 3)
    world.log().start_anew()
    ids += world.send(4, 5, 6)
    reader = listing(world, 4)
    took = noted(reader, monkeypatch)
    for upto in (4, 6):
        reader.run_once()
        assert took == ids[:upto]


def test_nothing_is_healed_past_what_was_sent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a restore of the database takes back what was sent, in the middle of a gap."""
    monkeypatch.setattr(healing, "PAGE", 2)
    monkeypatch.setattr("unified_log.readers.reader.PAGE", 2)
    ids = world.send(*range(1, 11))
    world.log().start_anew()
    world.send(11)
    reader = listing(world)
    reader.run_once()
    assert reader.at.position == ids[1]
    world.connection.execute("UPDATE streamer_state SET last_sent_id = %s", [ids[4]])
    hurry(reader)
    assert listed(world) == ids[:5]


def test_a_late_commit_is_not_healed_over(world: World) -> None:
    with transaction(world) as slow:
        late = slow.execute("INSERT INTO rides (distance) VALUES (1) RETURNING id").fetchone()
        world.send(2)
        reader = listing(world)
        hurry(reader)
        assert listed(world) == []
        slow.execute("SELECT stage(%s, 'ride.create', '{\"id\": 0}')", late)
        slow.rollback()
    drain(world.streamer())
    hurry(reader)
    assert len(listed(world)) == 1


@pytest.mark.proves("recounts")
@pytest.mark.parametrize("page", [3, 1000])
def test_a_recount_starts_anew_and_counts_nothing_as_healed(
    world: World, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """State and position fit at every moment, and what trimming left is read no second time."""
    monkeypatch.setattr(healing, "PAGE", page)
    monkeypatch.setattr("unified_log.readers.reader.PAGE", page)
    reader = listing(world)
    ids = world.send(*range(1, 9))
    hurry(reader)
    stood_at = reader.at
    world.connection.execute("UPDATE listed SET ride_id = 1")
    world.connection.execute("UPDATE checkpoints SET recount = true WHERE name = 'listing0'")
    reader.run_once()
    assert (reader.at.redis_id, reader.at.position) == (stood_at.redis_id, world.start)
    while reader.at.position < ids[-1]:
        reader.run_once()
        assert listed(world) == [ride for ride in ids if ride <= reader.at.position]
    assert world.value("SELECT furthest FROM checkpoints") == ids[-1]
    assert counts(world) == (0, 0, 0)
    assert world.value("SELECT resets_applied FROM checkpoints") == 1
    world.log().start_anew()
    world.send(9, 10)
    hurry(reader)
    assert len(listed(world)) == 10


def test_a_reader_of_more_types_than_before_recounts(world: World) -> None:
    reader = listing(world)
    ids = world.send(1, 2)
    world.connection.execute(
        "WITH rated AS (INSERT INTO ratings (ride_id, stars) VALUES (%s, 5) RETURNING id)"
        " SELECT stage(id, 'rating.create', '{}') FROM rated",
        [ids[0]],
    )
    drain(world.streamer())
    hurry(reader)
    assert not world.value("SELECT recount::int FROM checkpoints")

    class Both(Listing):
        TYPES = {**Listing.TYPES, "rating.create": lambda record: record}  # noqa: RUF012

    reader.__class__(world.log(), Both(world.connect(), "listing0"))
    assert world.value("SELECT recount::int FROM checkpoints")
    reader.__class__(world.log(), Both(world.connect(), "another"))
    assert not world.value("SELECT recount::int FROM checkpoints WHERE name = 'another'")


def test_an_older_process_passes_nothing_that_a_newer_one_handles(world: World) -> None:
    """Neither in a batch nor in the recount for which the newer one has asked."""
    older = listing(world)
    world.send(1)
    hurry(older)

    class More(Listing):
        TYPES = {**Listing.TYPES, "other.kind": lambda record: record}  # noqa: RUF012

    older.__class__(world.log(), More(world.connect(), "listing0"))
    with pytest.raises(Overtaken, match="other types"):
        older.run_once()
    assert world.value("SELECT recount::int FROM checkpoints") == 1
    world.connection.execute("UPDATE checkpoints SET recount = false")
    world.send(2)
    with pytest.raises(Overtaken):
        hurry(older)
    assert len(listed(world)) == 1


def test_a_page_of_a_long_gap_visits_few_rows(world: World) -> None:
    """Also of a table without statistics, for which the planner would sort the rest of the gap."""
    world.connection.execute("INSERT INTO rides (distance) SELECT 1 FROM generate_series(1, 20000)")
    with world.connection.transaction():
        world.connection.execute(healing.BY_INDEX)
        [plan] = world.connection.execute(
            psycopg.sql.SQL("EXPLAIN (ANALYZE, FORMAT JSON) ") + psycopg.sql.SQL(healing.RECORDS),
            [world.start + 5000, world.start + 20000, ["ride.create"], 1000],
        ).fetchone() or (None,)
    assert "Sort" not in str(plan).replace("Sort Key", "")
    assert plan[0]["Plan"]["Actual Rows"] == 1000
