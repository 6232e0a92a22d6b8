"""Packages of npm's that tests use: installed at first use, into this user's cache."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.folders import cache

PATIENCE = 300  # seconds
# Where no registry can be had, that is known after seconds: npm itself asks for more than a minute.
SOON = ("--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-timeout=30000")


def installed(package: str) -> Path:
    """The folder of a package, such as "azurite@3.37.0". Skips the test where it can't be had."""
    place = cache() / package.strip("@").replace("/", "-").replace("@", "-")
    found = place / "node_modules" / package.rpartition("@")[0]
    if place.exists():
        return found
    if not (shutil.which("npm") and shutil.which("node")):
        pytest.skip(f"npm, which would install {package}, is not installed")
    anew = place.with_name(f"{place.name}.{os.getpid()}")
    anew.mkdir(parents=True)
    install = ("install", "--prefix", anew, "--no-audit", "--no-fund", "--ignore-scripts", *SOON)
    try:
        subprocess.run(
            ["npm", *install, package],  # noqa: S607
            check=True,
            capture_output=True,
            timeout=PATIENCE,
        )
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(anew, ignore_errors=True)
        pytest.skip(f"npm can't install {package}: {error}")
    try:
        anew.rename(place)
    except OSError:  # another worker was faster
        shutil.rmtree(anew, ignore_errors=True)
    return found
