"""The live page as a person sees it who looks on: what is new, what is lost, what is broken."""

import itertools
import re
import subprocess
from collections.abc import Iterator

import pytest
from selenium.webdriver import Keys

from lab.ports import free_ports
from tests.support.browser import Browser
from tests.support.honcho import Fleet, person
from tests.support.world import PATIENCE

# The ride at which each total stands, as the page shows it.
STANDINGS = """
    return [...document.querySelectorAll("#totals table:first-of-type tbody tr")].map(
        (row) => Number(row.lastElementChild.textContent.replaceAll(",", "")));
"""
MARK = "window.isTheSame = true"
IS_THE_SAME = "return window.isTheSame === true"


def post(fleet: Fleet) -> int:
    """A ride more; returns its id."""
    answer = fleet.client.post("/rides", data={"distance": "539.837"}).raise_for_status()
    return int(answer.headers["location"].rpartition("/")[2])


def shows_ride(chromium: Browser, ride: int) -> bool:
    """Whether the page shows both totals at this ride, or after it."""
    standings = chromium.script(STANDINGS)
    return len(standings) == 2 and min(standings) >= ride


def appears(fleet: Fleet, chromium: Browser) -> None:
    """Post a ride, and wait until the page shows that both totals have it."""
    ride = post(fleet)
    chromium.eventually(lambda: shows_ride(chromium, ride), f"ride {ride} on the page")


def test_a_ride_appears_without_a_word_of_complaint(
    fleet: Fleet, chromium: Browser, url: str
) -> None:
    chromium.open(url)
    chromium.script(MARK)
    for _ in range(3):
        appears(fleet, chromium)
    assert chromium.script(IS_THE_SAME)
    assert chromium.console() == []


@pytest.fixture
def another(fleet: Fleet) -> Iterator["Another"]:
    """A second process that shows the same fleet, since the fleet ends with its own."""
    another = Another(fleet)
    another.start()
    yield another
    another.kill()


class Another:
    """`python -m watch` beside the fleet's own."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.port = free_ports()
        self.url = f"http://127.0.0.1:{self.port}/"
        self.process: subprocess.Popen[str]

    def start(self) -> None:
        self.process = person(self.fleet, "watch", WATCH_PORT=str(self.port))
        assert self.process.stdout
        assert "Listening" in self.process.stdout.readline()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=PATIENCE)


def test_a_page_that_has_lost_its_server_says_so_and_goes_on_by_itself(
    fleet: Fleet, chromium: Browser, another: Another
) -> None:
    chromium.open(another.url)
    appears(fleet, chromium)
    chromium.script(MARK)
    another.kill()
    chromium.shows("has lost the server", "header")
    faded = "return getComputedStyle(document.querySelector('.state')).opacity"
    assert float(chromium.script(faded)) < 1  # nothing seems to be up
    another.start()
    chromium.eventually(
        lambda: "lost the server" not in chromium.texts("header")[0], "a page that goes on"
    )
    appears(fleet, chromium)
    assert chromium.script(IS_THE_SAME)


def test_a_tab_that_nobody_sees_leaves_its_connection_to_others(
    fleet: Fleet, chromium: Browser, url: str
) -> None:
    """A browser has six for one server."""
    driver = chromium.driver
    first = driver.current_window_handle
    chromium.open(url)
    try:
        for _ in range(6):
            driver.switch_to.new_window("tab")
            driver.get(url)
            chromium.eventually(lambda: chromium.texts("#clock") != [""], "a page")
        appears(fleet, chromium)
    finally:
        for tab in driver.window_handles:
            if tab != first:
                driver.switch_to.window(tab)
                driver.close()
        driver.switch_to.window(first)
    chromium.eventually(lambda: chromium.script("return !document.hidden"), "the first tab")
    appears(fleet, chromium)


# Of each button that breaks the fleet: whether it can't be pressed.
DISABLED = """
    return [...document.querySelectorAll("#breaking button")].map(
        (button) => button.matches(":disabled"));
"""


def is_being_broken(chromium: Browser) -> bool:
    """Whether no button can be pressed."""
    disabled: list[bool] = chromium.script(DISABLED)
    return bool(disabled) and all(disabled)


def since_the_press(chromium: Browser) -> list[str]:
    """What the feed has told since a button was pressed, the newest first. Before, others were."""
    lines = chromium.texts("#feed li")
    return list(itertools.takewhile(lambda line: "was pressed" not in line, lines))


def test_a_log_that_was_wiped_by_a_button_is_seen_to_heal(
    fleet: Fleet, chromium: Browser, url: str
) -> None:
    chromium.open(url)
    chromium.eventually(lambda: not is_being_broken(chromium), "buttons that can be pressed")
    while chromium.tab() != "break-wipe-log":
        pass
    chromium.press(Keys.ENTER)
    chromium.eventually(lambda: is_being_broken(chromium), "buttons that can't be pressed")
    chromium.shows("Being broken: a consumer is frozen", "#verdict")
    assert "All is well" not in chromium.texts("#verdict")[0]
    healed = "Healed: all is well"
    chromium.eventually(lambda: healed in "".join(since_the_press(chromium)), healed)
    told = since_the_press(chromium)
    lines = (healed, r"consumer\d healed (a gap|\d+ gaps): ", "The log is gone")
    seen = [
        next((place for place, line in enumerate(told) if re.search(words, line)), None)
        for words in lines
    ]
    assert None not in seen, told
    assert seen == sorted(seen), told  # type: ignore[type-var]
    chromium.eventually(lambda: not is_being_broken(chromium), "buttons to be pressed again")
    chromium.shows("All is well", "#verdict")
    assert chromium.console() == []
