"""A headless Chromium, driven by selenium. Debian's chromium and chromium-driver are enough.

Nothing is downloaded, and only servers whose pages are opened are contacted.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from selenium.webdriver import Chrome, ChromeOptions, ChromeService

from rocket_rides.parent_death import preexec_die_with_parent

PROGRAMS = ("chromium", "chromedriver")
FLAGS = (
    "headless=new",
    "no-sandbox",  # which root can't have
    "disable-gpu",
    "disable-quic",
    "no-first-run",
    "disable-background-networking",
    "disable-component-update",
    "disable-sync",
    "no-proxy-server",
    # One process renders whatever is opened: none is kept for a page that was left, or may come.
    "renderer-process-limit=1",
    "disable-site-isolation-trials",
    "disable-features=BackForwardCache,SpareRendererForSitePerProcess",
    "remote-debugging-pipe",  # closed with the driver: the browser does not outlive it
)
# selenium asks no server which driver to take, nor tells one that it is in use.
QUIET = {"SE_OFFLINE": "true", "SE_AVOID_STATS": "true"}


def missing() -> str:
    """Why there is no browser; empty where there is one."""
    absent = [program for program in PROGRAMS if not shutil.which(program)]
    packages = "Debian's packages chromium and chromium-driver have both"
    return f"no {' and no '.join(absent)}: {packages}" if absent else ""


@contextmanager
def chromium() -> Iterator[Chrome]:
    """Start one with an empty profile. It ends with its starter, however that ends."""
    os.environ.update(QUIET)
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.set_capability("goog:perfLoggingPrefs", {"enableNetwork": True, "enablePage": False})
    service = ChromeService(
        executable_path=shutil.which("chromedriver") or "",
        log_output=subprocess.DEVNULL,
        popen_kw={"preexec_fn": preexec_die_with_parent()},
    )
    with tempfile.TemporaryDirectory(
        prefix="rides-browser-", ignore_cleanup_errors=True
    ) as profile:
        for flag in (*FLAGS, f"user-data-dir={profile}"):
            options.add_argument(f"--{flag}")
        driver = Chrome(options=options, service=service)
        try:
            yield driver
        finally:
            driver.quit()
