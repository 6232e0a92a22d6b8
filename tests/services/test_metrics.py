"""The metrics of a real database and a real log."""

from decimal import Decimal

from tests.support.looks import look
from tests.support.metrics import TEXT, series, value
from tests.support.world import World, catch_up, drain


def test_what_happened_is_told_in_both_formats(world: World) -> None:
    """A consumer has counted three rides, two of which it healed; a fourth is staged."""
    world.take("1.001", "2.002", "3.003")
    drain(world.streamer())
    world.log().redis.xtrim(world.stream, maxlen=1, approximate=False)
    catch_up(world.consumer())
    world.take("4.004")
    facts = look(world)
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
        "reader_records_healed_total": 2,
        "reader_healed_meters_total": float(Decimal("3.003")),
        "reader_distance_meters": float(Decimal("6.006")),
        "reader_lag_records": 1,
        "reader_processes": 0,
    }.items():
        assert value(told, name, kind="total", reader="consumer0") == known, name
    assert (value(told, "up", server="postgres"), value(told, "up", server="redis")) == (1, 1)
    assert (value(told, "log_bytes") or 0) > 100
