from typing import Any
import pytest
from tests.support.listing import Listing, hurry, listed, listing
from tests.support.world import World, drain
from unified_log.errors import Overtaken
from unified_log.readers.reader import Reader
from tests.services.test_held_out import ASK, held, positions, refuse


def test_a_race(world: World, monkeypatch) -> None:
    a = listing(world, 1)
    b = listing(world)
    ids = world.send(1, 2, 3)
    monkeypatch.setattr(a.handler, "REFUSED", {1})   # only a refuses
    reload = a._taking._reload
    def after_another():
        if b.at.position == world.start:
            hurry(b)
        reload()
    monkeypatch.setattr(a._taking, "_reload", after_another)
    try:
        for _ in range(10): a.run_once()
    except Overtaken as e:
        print(e)
    print(held(world), listed(world), ids, a.at, world.connection.execute("select position from checkpoints").fetchall())
    assert listed(world) == ids
    assert held(world) == []


class Both(Listing):
    TYPES = {**Listing.TYPES, "rating.create": lambda record: record}
    def take(self, records):
        super().take([r for r in records if hasattr(r, "distance")])
        for r in records:
            if not hasattr(r, "distance"):
                self.connection.execute("INSERT INTO listed (name, ride_id, distance) VALUES (%s, %s, 0)", [self.name, r.id])

def rate(world, ride):
    world.connection.execute(
        "WITH rated AS (INSERT INTO ratings (ride_id, stars) VALUES (%s, 5) RETURNING id)"
        " SELECT stage(id, 'rating.create', '{}') FROM rated", [ride])
    drain(world.streamer())

@pytest.mark.parametrize("after_recount", [0, 1])
def test_b_types(world: World, after_recount) -> None:
    old = listing(world)
    ids = world.send(1, 2)
    rate(world, ids[0])
    hurry(old)
    new = Reader(world.log(), Both(world.connect(), "listing0"))
    if after_recount:
        hurry(new)
        rate(world, ids[1])
    try:
        hurry(old)
    except Overtaken as e:
        print(e)
    for _ in range(3):
        try:
            hurry(new); break
        except Overtaken:
            new = Reader(world.log(), Both(world.connect(), "listing0"))
    n = world.value("SELECT count(*) FROM log_records")
    assert len(listed(world)) == n

def test_c_loop(world: World) -> None:
    reader = listing(world)
    refuse(world, 2, "RAISE EXCEPTION 'no'")
    ids = world.send(1, 2, 3)
    hurry(reader)
    world.connection.execute("UPDATE held_out_records SET type = 'x.y', retry = true")
    for _ in range(10):
        reader.run_once()
    assert not world.value("SELECT count(*) FROM held_out_records WHERE retry")

def test_e_exit(world: World) -> None:
    reader = listing(world)
    refuse(world, 1, "RAISE EXCEPTION 'no'")
    ids = world.send(*[1] * 12, 2)
    with pytest.raises(Exception):
        hurry(reader)
    world.connection.execute("UPDATE held_out_records SET dropped_at = now()")
    hurry(listing(world))
    assert len(held(world)) == 12
