"""How long a reader waits for the streamer's commit, as it learns it."""

from unified_log.readers.committing import LONGEST, SHORTEST, Committing


def test_a_look_that_came_too_soon_makes_the_wait_longer() -> None:
    committing = Committing()
    committing.learn(too_soon=True)
    assert committing.seconds > SHORTEST


def test_it_never_waits_long() -> None:
    committing = Committing()
    for _ in range(100):
        committing.learn(too_soon=True)
    assert committing.seconds == LONGEST


def test_it_forgets_a_slow_time() -> None:
    committing = Committing()
    for _ in range(100):
        committing.learn(too_soon=True)
    for _ in range(200):
        committing.learn(too_soon=False)
    assert committing.seconds == SHORTEST


def test_few_looks_are_too_soon_when_commits_take_equally_long() -> None:
    committing, too_soon = Committing(), []
    for _ in range(1000):
        too_soon.append(committing.seconds < 0.001)
        committing.learn(too_soon=too_soon[-1])
    assert 20 < sum(too_soon) < 120
