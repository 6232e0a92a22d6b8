"""The metrics of a real database and a real log, and of servers that are away."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import pytest

from lab.ports import free_ports
from rocket_rides.settings import Settings
from tests.support.metrics import OPENMETRICS, TEXT, Series, series, value
from tests.support.world import World, catch_up, drain
from watch.facts import Facts
from watch.gathering import Gatherer


def settings(world: World, *, database_url: str = "", redis_url: str = "") -> Settings:
    return Settings(
        database_url=database_url or world.postgres_url,
        redis_url=redis_url or world.redis.url,
        stream_name=world.stream,
    )


@contextmanager
def gathering(config: Settings) -> Iterator[Gatherer]:
    gatherer = Gatherer(config)
    try:
        yield gatherer
    finally:
        gatherer.close()


def gathered(world: World, **urls: str) -> Facts:
    with gathering(settings(world, **urls)) as gatherer:
        return gatherer.gather()


@pytest.fixture
def healed(world: World) -> World:
    """A consumer has counted three rides, two of which it healed; a fourth is staged."""
    streamer, consumer = world.streamer(), world.consumer()
    world.take("1.001", "2.002", "3.003")
    drain(streamer)
    log = world.log()
    log.redis.xtrim(world.stream, maxlen=1, approximate=False)
    catch_up(consumer)
    world.take("4.004")
    return world


def test_what_happened_is_told_in_both_formats(healed: World) -> None:
    facts = gathered(healed)
    told = series(facts)
    assert told == series(facts, TEXT)
    for name, known in {
        "taken_total": 4.0,
        "records_sent_total": 3,
        "records_staged": 1,
        "totals_agree": 1,
    }.items():
        assert value(told, name) == known, name
    for name, known in {
        "reader_gaps_healed_total": 1,
        "reader_rides_healed_total": 2,
        "reader_healed_meters_total": float(Decimal("3.003")),
        "reader_distance_meters": float(Decimal("6.006")),
        "reader_lag_rides": 1,
        "reader_processes": 0,
    }.items():
        assert value(told, name, kind="total", reader="consumer0") == known, name
    assert (value(told, "up", server="postgres"), value(told, "up", server="redis")) == (1, 1)
    assert (value(told, "log_bytes") or 0) > 100


def test_while_a_server_is_away_the_other_is_told_of(healed: World) -> None:
    nobody = free_ports()
    without = series(gathered(healed, redis_url=f"redis://127.0.0.1:{nobody}/0"))
    assert (value(without, "up", server="postgres"), value(without, "up", server="redis")) == (1, 0)
    assert value(without, "log_bytes") is None
    assert value(without, "taken_total") == 4

    without = series(gathered(healed, database_url=f"postgresql://nobody@127.0.0.1:{nobody}/none"))
    assert (value(without, "up", server="postgres"), value(without, "up", server="redis")) == (0, 1)
    assert value(without, "log_bytes")
    assert value(without, "taken_total") is None


def test_counters_never_fall_while_rides_flow(world: World) -> None:
    streamer, consumer, before = world.streamer(7), world.consumer(), Series()
    with gathering(settings(world)) as gatherer:
        for _ in range(30):
            world.take(*[1] * 10)
            streamer.run_once()
            consumer.run_once()
            told = series(gatherer.gather(), OPENMETRICS)
            for key, known in told.items():
                assert not key[0].endswith("_total") or known >= before.get(key, 0), key
            before = told
    assert value(before, "taken_total") == 300
    assert (value(before, "records_sent_total") or 0) > 100


def test_a_name_with_markup_in_it_is_escaped(healed: World) -> None:
    name = '"} 1\nrocket_rides_up{server="<b>'.replace("\n", "\\n")
    catch_up(healed.consumer(name))
    told = series(gathered(healed))
    assert value(told, "reader_lag_rides", kind="total", reader=name) == 1
