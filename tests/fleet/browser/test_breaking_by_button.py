"""The buttons that break the demo: what breaks is seen, and so is its healing. Theirs alone."""

import pytest
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By

from demo.breaking.attempt import alone
from tests.support.browser import Browser
from tests.support.honcho import Fleet
from tests.support.page import Markup

# Of each button that breaks the fleet: whether it can't be pressed.
DISABLED = """
    return [...document.querySelectorAll("#breaking button")].map(
        (button) => button.matches(":disabled"));
"""


def press(chromium: Browser, way: str) -> None:
    """Whichever button it is at that moment: the page may replace it by a new one."""

    def pressed() -> bool:
        chromium.driver.find_element(By.ID, f"break-{way}").click()
        return True

    chromium.eventually(pressed, "a button")


def is_pressed(chromium: Browser) -> bool:
    """Whether the fleet is being broken: no button can be pressed then."""
    disabled: list[bool] = chromium.script(DISABLED)
    return bool(disabled) and all(disabled)


def test_a_log_that_was_wiped_by_a_button_is_seen_to_heal(
    demo: Fleet, chromium: Browser, url: str
) -> None:
    chromium.open(url)
    chromium.eventually(lambda: not is_pressed(chromium), "buttons that can be pressed")
    press(chromium, "wipe-log")
    chromium.eventually(lambda: is_pressed(chromium), "buttons that can't be pressed")
    chromium.shows("Being broken: a consumer is frozen", "#verdict")
    assert "All is well" not in chromium.texts("#verdict")[0]
    chromium.shows("is frozen for", "#feed li")
    chromium.shows("The log is gone", "#feed li")
    chromium.shows("consumer1 healed a gap: ", "#feed li")
    chromium.shows("Healed: all is well", "#feed li")
    told = chromium.texts("#feed li")  # the newest first
    seen = [
        next(place for place, line in enumerate(told) if words in line)
        for words in ("Healed: all is well", "consumer1 healed a gap", "The log is gone")
    ]
    assert seen == sorted(seen)
    chromium.eventually(lambda: not is_pressed(chromium), "buttons that can be pressed again")
    chromium.shows("All is well", "#verdict")
    assert chromium.console() == []
    assert [request for request in chromium.requests() if not request.startswith(url)] == []


def test_a_redis_that_was_stopped_by_a_button_is_seen_to_come_back(
    demo: Fleet, chromium: Browser, url: str
) -> None:
    """By keyboard, as well."""
    chromium.open(url)
    chromium.eventually(lambda: not is_pressed(chromium), "buttons that can be pressed")
    chromium.watch_texts("#verdict")
    while chromium.tab().name != "break-stop-redis":
        pass
    chromium.press(Keys.ENTER)
    chromium.has_shown("Being broken: Redis is stopped, and restarted")
    chromium.shows("Redis serves again", "#feed li")
    chromium.eventually(lambda: not is_pressed(chromium), "buttons that can be pressed again")
    chromium.shows("Redis up", "#servers")


def test_a_second_way_is_refused_while_one_is_under_way(
    demo: Fleet, chromium: Browser, url: str
) -> None:
    chromium.open(url)
    chromium.eventually(lambda: not is_pressed(chromium), "buttons that can be pressed")
    press(chromium, "freeze")
    chromium.eventually(lambda: is_pressed(chromium), "buttons that can't be pressed")
    form = Markup(demo.client.get(url).text).form("token")
    answer = demo.client.post(
        f"{url}break",
        data={"token": form["token"], "way": "wipe-log"},
        headers={"Origin": url.removesuffix("/")},
    )
    assert answer.status_code == 409
    assert "under way" in answer.text
    chromium.eventually(lambda: not is_pressed(chromium), "buttons that can be pressed again")


def test_a_consumer_that_is_frozen_is_seen_to_fall_behind_and_to_catch_up(
    demo: Fleet, chromium: Browser, url: str
) -> None:
    chromium.open(url)
    chromium.shows("All is well", "#verdict")
    chromium.watch_texts("#verdict h1.noted, #counted .noted .lag.noted")
    press(chromium, "freeze")
    chromium.has_shown("Being broken: a consumer is frozen")
    chromium.has_shown(" behind, ")
    chromium.shows("All is well", "#verdict h1.good")
    chromium.eventually(lambda: len(chromium.texts("#counted .lag.good")) == 2, "all keep up")


def test_a_button_that_was_refused_at_once_can_be_pressed_again(
    demo: Fleet, chromium: Browser, url: str
) -> None:
    """Although all of it, begin and end, may come between two looks."""
    chromium.open(url)
    chromium.eventually(lambda: not is_pressed(chromium), "buttons that can be pressed")
    with alone(demo.data):  # as `make break` holds the lock
        press(chromium, "freeze")
        chromium.shows("wait for its end", "#feed li")
        chromium.eventually(lambda: not is_pressed(chromium), "buttons that can be pressed again")


# What is different from a button's request: the fields, or the headers.
NOT_FROM_THE_PAGE = {
    "no token": ({"token": ""}, {}),
    "another site's page": ({}, {"Origin": "http://elsewhere.example"}),
    "another site, as the browser says": ({}, {"Sec-Fetch-Site": "cross-site"}),
    "a name that was bound anew": ({}, {"Host": "elsewhere.example"}),
    "no such way": ({"way": "rm -rf"}, {}),
}


@pytest.mark.parametrize("kind", NOT_FROM_THE_PAGE)
def test_a_request_that_is_not_from_the_page_breaks_nothing(
    demo: Fleet, url: str, kind: str
) -> None:
    different, headers = NOT_FROM_THE_PAGE[kind]
    form = Markup(demo.client.get(url).text).form("token")
    fields = {"token": form["token"], "way": "wipe-log", **different}
    origin = {"Origin": url.removesuffix("/")}
    answer = demo.client.post(f"{url}break", data=fields, headers={**origin, **headers})
    assert 400 <= answer.status_code < 500
    buttons = [
        attributes
        for tag, attributes in Markup(demo.client.get(url).text).elements
        if tag == "button" and attributes.get("name") == "way"
    ]
    assert len(buttons) > 3
    assert not any("disabled" in attributes for attributes in buttons)
