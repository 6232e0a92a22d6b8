"""The live page for everyone: without scripts, on a phone, in the dark, read aloud."""

from collections.abc import Iterator

import psycopg
import pytest
from selenium.webdriver.common.by import By

from tests.support.browser import Browser
from tests.support.honcho import Fleet
from tests.support.world import eventually

DELIVERED = "SELECT ride_id FROM receipts WHERE outcome = 'delivered' ORDER BY ride_id DESC LIMIT 3"
# As if the receiver had refused them, and what they become again.
DIE = """
    UPDATE receipts SET outcome = 'dead', decided_at = now(), reason = 'the receiver answered 422'
    WHERE ride_id = ANY(%s)
"""
REVIVE = """
    UPDATE receipts SET outcome = 'delivered', reason = NULL, replay_at = NULL
    WHERE ride_id = ANY(%s)
"""


@pytest.fixture
def database(fleet: Fleet) -> Iterator[psycopg.Connection]:
    with psycopg.connect(fleet.database, autocommit=True) as connection:
        yield connection


@pytest.fixture
def dead(database: psycopg.Connection) -> Iterator[list[int]]:
    """Three rides whose receipts are dead."""

    def delivered() -> list[int]:
        return [ride for (ride,) in database.execute(DELIVERED).fetchall()]

    eventually(lambda: len(delivered()) == 3, "three receipts")
    rides = delivered()
    database.execute(DIE, [rides])
    yield rides
    database.execute(REVIVE, [rides])


def test_without_scripts_the_page_has_its_numbers_and_its_buttons_work(
    chromium: Browser, url: str, dead: list[int]
) -> None:
    chromium.open(url, scripts=False)
    chromium.shows(f"ride {dead[0]:,}", "#dead li")
    text = chromium.script("return document.body.innerText")
    for word in ("POST", "Outbox", "Streamer", "Log", "consumer0", "consumer1", "Rollup"):
        assert word in text
    assert "has lost the server" not in text
    chromium.driver.find_element(By.ID, "break-stop-redis").click()
    chromium.shows("was pressed", "#feed li")
    assert chromium.driver.current_url.startswith(url)
    assert "/break" not in chromium.driver.current_url
    chromium.shows("Redis serves again", "#feed li")
    chromium.shows("Healed: all is well", "#feed li")


def another_look(chromium: Browser) -> None:
    """Wait until the page shows the next one."""
    shown = chromium.texts("#clock")
    chromium.eventually(lambda: chromium.texts("#clock") != shown, "another look")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, True)], ids=["light", "dark"])
def test_nothing_serious_keeps_anyone_from_reading_it_and_no_button_moves(
    chromium: Browser,
    url: str,
    database: psycopg.Connection,
    dead: list[int],
    width: int,
    dark: bool,
) -> None:
    """No button does while its numbers change."""
    chromium.open(url, width=width, dark=dark)
    chromium.shows(f"ride {dead[0]:,}", "#dead li")
    assert chromium.overhang == 0
    assert chromium.audit() == []
    chromium.watch_buttons()
    for change in (DIE, REVIVE):
        database.execute(change, [dead[1:]])
        another_look(chromium)
    places = chromium.places_of_buttons()
    assert len(places) >= 3
    assert {name: seen for name, seen in places.items() if len(seen) > 1} == {}


FAULTY = """data:text/html,<!doctype html><html lang=en><title>Faulty</title><main><h1>Faulty</h1>
<img src=http://localhost:1/elsewhere.png><p style="width: 2000px">wide<button></button></main>"""


def test_a_page_with_faults_is_not_taken_for_one_without(chromium: Browser) -> None:
    chromium.open(FAULTY, width=400)
    found = {line.partition(" ")[0] for line in chromium.audit()}
    assert {"image-alt", "button-name"} <= found
    assert chromium.overhang > 1000
    assert chromium.console()
