"""The live page as a person sees it who looks on: what is new appears, and what is lost is said."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import psycopg
import pytest

from lab.ports import free_ports
from tests.support.browser import Browser
from tests.support.honcho import Fleet
from tests.support.terminal import person
from tests.support.world import PATIENCE

# The ride at which each total stands, as the page shows it.
STANDINGS = """
    return [...document.querySelectorAll("#totals table:first-of-type tbody tr")].map(
        (row) => Number(row.lastElementChild.textContent.replaceAll(",", "")));
"""
MARK = "window.isTheSame = true"
IS_THE_SAME = "return window.isTheSame === true"


def post(demo: Fleet) -> int:
    """A ride more; returns its id."""
    answer = demo.client.post("/rides", data={"distance": "539.837"}).raise_for_status()
    return int(answer.headers["location"].rpartition("/")[2])


def shows_ride(chromium: Browser, ride: int) -> bool:
    """Whether the page shows both totals at this ride, or after it."""
    standings = chromium.script(STANDINGS)
    return len(standings) == 2 and min(standings) >= ride


def appears(demo: Fleet, chromium: Browser) -> None:
    """Post a ride, and wait until the page shows that both totals have it."""
    ride = post(demo)
    chromium.eventually(lambda: shows_ride(chromium, ride), f"ride {ride} on the page")


def test_a_ride_appears_without_a_word_of_complaint_or_a_request_elsewhere(
    demo: Fleet, chromium: Browser, url: str
) -> None:
    chromium.open(url)
    chromium.script(MARK)
    for _ in range(3):
        appears(demo, chromium)
    assert chromium.script(IS_THE_SAME)
    assert chromium.console() == []
    asked = chromium.requests()
    assert f"{url}events" in asked
    assert [request for request in asked if not request.startswith(url)] == []


@pytest.fixture
def another(demo: Fleet) -> Iterator["Another"]:
    """A second process that shows the same fleet, since the fleet ends with its own."""
    another = Another(demo)
    another.start()
    yield another
    another.kill()


class Another:
    """`python -m watch` beside the fleet's own."""

    def __init__(self, demo: Fleet) -> None:
        self.demo = demo
        self.port = free_ports()
        self.url = f"http://127.0.0.1:{self.port}/"
        self.process: subprocess.Popen[str]

    def start(self) -> None:
        self.process = person(self.demo, "watch", WATCH_PORT=str(self.port))
        assert self.process.stdout
        assert "Listening" in self.process.stdout.readline()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=PATIENCE)


def test_a_page_that_has_lost_its_server_says_so_and_goes_on_by_itself(
    demo: Fleet, chromium: Browser, another: Another
) -> None:
    chromium.open(another.url)
    appears(demo, chromium)
    chromium.script(MARK)
    another.kill()
    killed = time.monotonic()
    chromium.shows("has lost the server", "header")
    assert time.monotonic() - killed < 2.5  # and not only when a tick is overdue
    faded = "return getComputedStyle(document.querySelector('.state')).opacity"
    assert float(chromium.script(faded)) < 1  # nothing seems to be up
    another.start()
    chromium.eventually(
        lambda: "lost the server" not in chromium.texts("header")[0], "a page that goes on"
    )
    appears(demo, chromium)
    assert chromium.script(IS_THE_SAME)


def test_a_tab_that_nobody_sees_leaves_its_connection_to_others(
    demo: Fleet, chromium: Browser, url: str
) -> None:
    """A browser has six for one server."""
    driver = chromium.driver
    first = driver.current_window_handle
    chromium.open(url)
    try:
        for _ in range(7):
            driver.switch_to.new_window("tab")
            driver.get(url)
            chromium.eventually(lambda: chromium.texts("#clock") != [""], "a page")
        appears(demo, chromium)
    finally:
        for tab in driver.window_handles:
            if tab != first:
                driver.switch_to.window(tab)
                driver.close()
        driver.switch_to.window(first)
    chromium.eventually(lambda: chromium.script("return !document.hidden"), "the first tab")
    appears(demo, chromium)


@contextmanager
def frozen(processes: list[psutil.Process]) -> Iterator[None]:
    """They stand still during this block."""
    for process in processes:
        process.suspend()
    try:
        yield
    finally:
        for process in processes:
            process.resume()


def postgres(demo: Fleet) -> list[psutil.Process]:
    """What a new session and those of the page need: the postmaster, and their own processes."""
    with psycopg.connect(demo.database) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'watch%'"
        ).fetchall()
    sessions = [psutil.Process(pid) for (pid,) in rows]
    parent = sessions[0].parent()
    assert parent
    return [parent, *sessions]


def redis(demo: Fleet) -> list[psutil.Process]:
    return [process for process, command in demo.commands() if "valkey-server" in command[0]]


@pytest.mark.parametrize(("name", "server"), [("Postgres", postgres), ("Redis", redis)])
def test_a_server_that_hangs_is_seen_to_be_away_and_to_come_back(
    demo: Fleet, chromium: Browser, url: str, name: str, server: object
) -> None:
    chromium.open(url)
    appears(demo, chromium)
    with frozen(server(demo)):  # type: ignore[operator]
        chromium.shows(f"{name} away", "#servers")
        chromium.shows(f"{name} is away", "#feed li")
    chromium.shows(f"{name} up", "#servers")
    chromium.shows(f"{name} is back", "#feed li")
    appears(demo, chromium)
    assert chromium.console() == []
