"""What Prometheus gets from the page's process: under load, and while servers go and come back."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from threading import Event

import pytest

from demo.embedded.servers import Postgres, Redis
from tests.support.metrics import AS_PROMETHEUS_ASKS, TEXT, Series, parsed, value
from tests.support.page import Page
from tests.support.world import World, drain, eventually

ASKING = cycle([TEXT, AS_PROMETHEUS_ASKS])
RIDES = 500


@pytest.fixture
def page(own_world: World) -> Iterator[Page]:
    page = Page(own_world)
    yield page
    assert page.service.stop() == 0
    assert "Traceback" not in page.service.output.read_text()


def scrape(page: Page) -> Series:
    """All series, read by the client library's own parser: each scrape is a whole, and in time."""
    accept = next(ASKING)
    answer = page.client.get("/metrics", headers={"Accept": accept}, timeout=5)
    assert answer.status_code == 200
    return parsed(answer.text, accept)


def shows(page: Page, postgres: int, redis: int) -> None:
    """Wait until the metrics say which server is up."""

    def told() -> bool:
        told = scrape(page)
        ups = value(told, "up", server="postgres"), value(told, "up", server="redis")
        return ups == (postgres, redis)

    eventually(told, f"Postgres {postgres}, Redis {redis}")


def test_under_load_each_scrape_can_be_read_and_no_counter_falls(
    page: Page, own_world: World
) -> None:
    enough = Event()

    def load() -> None:
        streamer = own_world.streamer()
        while not enough.is_set():
            own_world.take(*[1] * 20)
            drain(streamer)

    def keep_scraping(_: int) -> Series:
        before: Series = {}
        while not enough.is_set():
            told = scrape(page)
            counters = [key for key in told if key[0].endswith("_total")]
            assert len(counters) > 3
            assert {key for key in counters if told[key] < before.get(key, 0)} == set()
            before = told
            if (value(told, "records_sent_total") or 0) > RIDES:
                enough.set()
        return before

    with ThreadPoolExecutor(5) as threads:
        loading = threads.submit(load)
        try:
            scraped = list(threads.map(keep_scraping, range(4)))
        finally:
            enough.set()
        loading.result()
    assert max(value(told, "taken_total") or 0 for told in scraped) > RIDES


def test_who_is_away_is_told_until_it_is_back(page: Page, own_world: World) -> None:
    postgres, redis = own_world.postgres, own_world.redis
    away: list[tuple[Postgres | Redis, tuple[int, int]]] = [
        (redis, (1, 0)),
        (postgres, (0, 0)),
    ]
    shows(page, 1, 1)
    try:
        for server, expected in away:
            server.stop()
            shows(page, *expected)
            assert value(scrape(page), "problems", kind="away") == expected.count(0)
        postgres.start()
        shows(page, 1, 0)
    finally:
        for server, _ in away:
            if not server.running:
                server.start()
    shows(page, 1, 1)
