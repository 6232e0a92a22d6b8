"""A headless Chromium that reports on a page: its console, its layout.

Debian's chromium and chromium-driver are enough. Nothing is downloaded, and only servers whose
pages are opened are contacted.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
from axe_core_python.selenium import Axe  # type: ignore[import-untyped]
from selenium.common.exceptions import JavascriptException, TimeoutException
from selenium.webdriver import ActionChains, Chrome, ChromeOptions, ChromeService, Keys
from selenium.webdriver.support.wait import WebDriverWait

from rocket_rides.parent_death import preexec_die_with_parent
from tests.support.world import PATIENCE

T = TypeVar("T")

PROGRAMS = ("chromium", "chromedriver")
FLAGS = (
    "headless=new",
    "no-sandbox",  # which root can't have
    "disable-gpu",
    "disable-quic",
    "disable-component-update",
    "no-proxy-server",
    "remote-debugging-pipe",  # closed with the driver: the browser does not outlive it
)
# selenium asks no server which driver to take, nor tells one that it is in use.
QUIET = {"SE_OFFLINE": "true", "SE_AVOID_STATS": "true"}
HEIGHT = 900  # pixels
# Seconds between looks: the page changes once a second, and a look keeps three processes busy.
LOOK_EVERY = 0.2

# The rules of WCAG 2.1, levels A and AA, and what axe-core's authors advise beside them.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
GRAVE = {"serious", "critical"}
TEXTS = "return [...document.querySelectorAll(arguments[0])].map((element) => element.innerText)"
# Notes where each button is within the document, in each frame, as long as it goes on.
WATCH_BUTTONS = """
    const places = window.places = {};
    const look = () => {
        for (const button of document.querySelectorAll("button")) {
            if (!button.checkVisibility()) continue;
            const box = button.getBoundingClientRect();
            const place = [box.left + scrollX, box.top + scrollY, box.width, box.height];
            (places[button.id || button.innerText] ??= {})[place.map(Math.round).join()] = true;
        }
        requestAnimationFrame(look);
    };
    look();
"""


class Browser:
    """One window. Its console is that of the page that was opened last."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver

    def open(
        self, url: str, *, width: int = 1280, dark: bool = False, scripts: bool = True
    ) -> None:
        """Show the page at `url` in a window `width` pixels wide, as if for the first time."""
        self.driver.get("about:blank")
        self.command("Emulation.setScriptExecutionDisabled", value=not scripts)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])
        size = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", **size)
        self.console()
        self.driver.get(url)

    def command(self, name: str, **parameters: object) -> Any:
        """A command of the Chrome DevTools Protocol."""
        return self.driver.execute_cdp_cmd(name, parameters)

    def script(self, source: str, *arguments: object) -> Any:
        """Run the body of a function; the page's Content-Security-Policy does not apply to it."""
        return self.driver.execute_script(source, *arguments)

    def eventually(self, claim: Callable[[], T], what: str) -> T:
        """Wait for a claim about elements, which the page may replace while it is looked at."""
        wait = WebDriverWait(self.driver, PATIENCE, LOOK_EVERY, [JavascriptException])
        return wait.until(lambda _: claim(), what)

    def shows(self, text: str, selector: str = "body") -> None:
        """Wait until an element that the selector finds shows the text, in whatever case."""
        wanted = text.lower()
        try:
            self.eventually(
                lambda: any(wanted in each.lower() for each in self.texts(selector)), text
            )
        except TimeoutException as error:
            raise AssertionError(f"{text!r} is not in {self.texts(selector)}") from error

    def texts(self, selector: str) -> list[str]:
        """What the elements that the selector finds show."""
        texts: list[str] = self.script(TEXTS, selector)
        return texts

    def console(self) -> list[str]:
        """New warnings and errors, those about the page's Content-Security-Policy included."""
        lines: list[dict[str, Any]] = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [
            f"{line['source']}: {line['message']}"
            for line in lines
            if line["level"] in ("WARNING", "SEVERE")
        ]

    def audit(self) -> list[str]:
        """The serious and critical findings of axe-core, with their places."""
        rules = {"type": "tag", "values": RULES}
        found = Axe().run(self.driver, options={"runOnly": rules, "resultTypes": ["violations"]})
        return [
            f"{rule['id']} ({rule['impact']}): {rule['help']}: {node['html']}"
            for rule in found["violations"]
            for node in rule["nodes"]
            if rule["impact"] in GRAVE
        ]

    def watch_buttons(self) -> None:
        """Begin to note where each button is."""
        self.script(WATCH_BUTTONS)

    def places_of_buttons(self) -> dict[str, list[str]]:
        """The places of each button since `watch_buttons`: left, top, width, height."""
        return {name: [*seen] for name, seen in self.script("return window.places").items()}

    def tab(self) -> str:
        """Press Tab; returns the id of what has the focus then."""
        self.press(Keys.TAB)
        focused: str = self.script("return document.activeElement.id")
        return focused

    def press(self, key: str) -> None:
        """Press a key, wherever the focus is."""
        ActionChains(self.driver).send_keys(key).perform()

    @property
    def overhang(self) -> int:
        """By how many pixels the page is wider than its window."""
        page = "document.documentElement"
        pixels: int = self.script(f"return {page}.scrollWidth - {page}.clientWidth")
        return pixels


@contextmanager
def browser() -> Iterator[Browser]:
    """Start one with an empty profile. It ends with its starter, however that ends.

    Skips the test where there is none.
    """
    if absent := [program for program in PROGRAMS if not shutil.which(program)]:
        packages = "Debian's packages chromium and chromium-driver have both"
        pytest.skip(f"no {' and no '.join(absent)}: {packages}")
    os.environ.update(QUIET)
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = ChromeService(
        executable_path=shutil.which("chromedriver") or "",
        log_output=subprocess.DEVNULL,
        popen_kw={"preexec_fn": preexec_die_with_parent()},
    )
    profile = tempfile.mkdtemp(dir=os.environ["TMPDIR"])  # which goes with the run
    for flag in (*FLAGS, f"user-data-dir={profile}"):
        options.add_argument(f"--{flag}")
    driver = Chrome(options=options, service=service)
    try:
        yield Browser(driver)
    finally:
        driver.quit()
