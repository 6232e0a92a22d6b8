"""A warning that many threads may give is given once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from unified_log.waiting import LimitedWarning

THREADS = 8


def test_threads_that_wait_for_the_same_reason_say_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for _ in range(20):
        warn, together = LimitedWarning(), Barrier(THREADS)

        def one(_: int, warn: LimitedWarning = warn, together: Barrier = together) -> None:
            together.wait()
            warn("the server is away")

        caplog.clear()
        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(one, range(THREADS)))
        assert caplog.messages == ["the server is away; trying again until it works"]
