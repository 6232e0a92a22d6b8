"""How many records a transaction takes: half as many where it took too long, then slowly more."""

from unified_log.readers.limit import Limit


def test_fewer_are_taken_at_once_and_then_slowly_more() -> None:
    limit = Limit(1000)
    limit.exceeded(1000)
    limit.exceeded(500)
    assert limit.now == 250
    limit.kept(249)  # there were no more
    assert limit.now == 250
    for _ in range(30):
        limit.kept(limit.now)
    assert 250 < limit.now < 500
    for _ in range(100):
        limit.kept(limit.now)
    assert limit.now == 1000


def test_there_is_always_one() -> None:
    limit = Limit(1)
    limit.exceeded(1)
    assert limit.now == 1
