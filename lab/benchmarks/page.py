"""What a person sees of it in a browser, and how soon: a ride, a fault and its healing.

The browser notes each change of the page with the machine's time, which is this program's, too.
Nothing is measured where there is no browser.
"""

import contextlib
import random
import sys
import time
from collections.abc import Callable
from statistics import median

from selenium.webdriver import Chrome

from lab.benchmarks import fleet, load
from lab.benchmarks.chromium import chromium, missing
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.stand import Stand, wait_until

ROUNDS = 3
RIDES = 12  # in each
PAUSE = (0.1, 0.9)  # seconds between them; random, to match no time between looks
FAULTS = 3
HEALTHY = 2.0  # seconds before each fault
GOAL = Goal("value", "<=", 1)

# Notes when each text was first to be seen, in seconds since 1970: after a frame was painted.
NOTE = """
    const [selector] = arguments;
    window.seen = {};
    const look = () => {
        const now = Date.now() / 1000;
        for (const element of document.querySelectorAll(selector))
            window.seen[element.textContent.trim()] ??= now;
    };
    new MutationObserver(() => requestAnimationFrame(look)).observe(
        document.body, {subtree: true, childList: true, attributes: true, characterData: true});
    look();
"""
FORGET = "window.seen = {}"
SEEN = "return Object.entries(window.seen)"
# At which ride each total stands; whether the servers can be reached.
STANDINGS, SERVERS = "#totals table:first-of-type tbody td:last-child", "#servers span"


def measure(stand: Stand, running: fleet.RunningFleet, port: int) -> list[Figure]:
    """With one browser that looks on."""
    if why := missing():
        print(f"nothing is measured in a browser: {why}", file=sys.stderr)
        return []
    stand.say("in a browser")
    with chromium() as browser:
        page = Seen(browser, f"http://127.0.0.1:{port}/")
        return [*_rides(page, running.port), *_faults(page, stand)]


class Seen:
    """When something was first to be seen on a page."""

    def __init__(self, browser: Chrome, url: str) -> None:
        self._browser = browser
        self._url = url

    def open(self, selector: str) -> None:
        """Open the page, and note the texts of what the selector finds."""
        self._browser.get(self._url)
        self._browser.execute_script(NOTE, selector)

    def forget(self) -> None:
        """Forget what was seen before."""
        self._browser.execute_script(FORGET)

    def first(self, claim: Callable[[str], bool]) -> float:
        """Wait for a text of which the claim holds; returns when it was first seen."""
        found: list[float] = []

        def look() -> bool:
            seen = self._browser.execute_script(SEEN)
            found.extend(moment for text, moment in seen if claim(text))
            return bool(found)

        wait_until(look, "it is on the page")
        return min(found)


def _rides(page: Seen, api: int) -> list[Figure]:
    """From a POST's answer until the page shows a total that has the ride."""
    half = Figure("From a POST's answer to the page, p50", "s", goal=GOAL)
    worst = Figure("From a POST's answer to the page, the longest", "s", goal=GOAL)
    page.open(STANDINGS)
    with contextlib.closing(load.KeepAlive(api)) as client:
        for _ in range(ROUNDS):
            answered = {}
            for _ in range(RIDES):
                time.sleep(random.uniform(*PAUSE))
                ride = fleet.ride_id(client.ask(next(load.RIDES)))
                answered[ride] = time.time()
            took = [page.first(_reached(ride)) - at for ride, at in answered.items()]
            half.runs.append(median(took))
            worst.runs.append(max(took))
    return [half, worst]


def _reached(ride: int) -> Callable[[str], bool]:
    return lambda text: int(text.replace(",", "") or 0) >= ride


def _faults(page: Seen, stand: Stand) -> list[Figure]:
    """From the end of Redis until the page says so; and from its return."""
    away = Figure("From the end of Redis to the page", "s", goal=GOAL)
    back = Figure("From its return to the page", "s", goal=GOAL)
    page.open(SERVERS)
    for _ in range(FAULTS):
        page.first(lambda text: text == "Redis up")
        time.sleep(HEALTHY + random.random())
        page.forget()
        stand.redis.stop()
        began = time.time()
        away.runs.append(page.first(lambda text: text == "Redis away") - began)
        page.forget()
        stand.redis.start()
        healed = time.time()
        back.runs.append(max(0.0, page.first(lambda text: text == "Redis up") - healed))
    return [away, back]
