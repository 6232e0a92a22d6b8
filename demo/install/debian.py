"""What pip can't install: Java, a browser, stock servers. As root on Debian, apt-get installs it.

Anybody else is told what to install. Everything works without it, but for what each is needed for.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from analytics.prerequisites import OLDEST_JAVA, require_java
from demo.install.steps import StepFailed, Steps
from rocket_rides.errors import Unavailable

# `satisfy` installs nothing if the release's own package is too old.
APT_GET = ("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=60")
SATISFY = (*APT_GET, "satisfy", "--yes", "--no-install-recommends")
QUIETLY = {"DEBIAN_FRONTEND": "noninteractive"}


class Programs(NamedTuple):
    """What they are needed for, and which of Debian's packages are missing for that."""

    purpose: str
    missing: Callable[[], list[str]]


def missing_java() -> list[str]:
    """What JAVA_HOME names was chosen by a person: where that is too old, a run says so."""
    if os.environ.get("JAVA_HOME"):
        return []
    try:
        require_java()
    except Unavailable:
        return [f"default-jre-headless (>= 2:1.{OLDEST_JAVA})"]
    return []


def missing_browser() -> list[str]:
    """Chromium and its driver, by the names that the tests look for."""
    packages = {"chromium": "chromium", "chromedriver": "chromium-driver"}
    return [package for program, package in packages.items() if not shutil.which(program)]


def missing_servers() -> list[str]:
    """PostgreSQL and Redis, unless settings name them (`demo.embedded.stock`); and PgBouncer."""
    postgres = shutil.which("postgres") or [*Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    redis = shutil.which("redis-server") or shutil.which("valkey-server")
    has = {
        "postgresql": os.environ.get("POSTGRES_PROGRAMS") or postgres,
        "redis-server": os.environ.get("REDIS_PROGRAMS") or redis,
        # It is in root's path alone.
        "pgbouncer": shutil.which("pgbouncer") or Path("/usr/sbin/pgbouncer").exists(),
    }
    return [package for package in has if not has[package]]


PROGRAMS = {
    "java": Programs("Java for the nightly job", missing_java),
    "browser": Programs("Chromium for the browser's tests", missing_browser),
    "stock": Programs("PostgreSQL and Redis for the tests on stock servers", missing_servers),
}


def can_install() -> bool:
    """Whether packages can be installed without asking: for root alone, where there is apt-get."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(programs: Programs, steps: Steps) -> None:
    """Install what is missing, or say what to install; the next run tries again."""
    if can_install():
        try:
            _satisfy(programs.missing(), steps)
        except StepFailed:
            steps.note(f"apt-get can't install {programs.purpose} now, or has none that is new")
    if missing := programs.missing():
        names = " ".join(package.split()[0] for package in missing)
        steps.note(f"needed is {programs.purpose} (Debian: apt install {names})")


def _satisfy(packages: list[str], steps: Steps) -> None:
    try:
        steps.run([*SATISFY, *packages], QUIETLY)
    except StepFailed:  # the lists of packages may be old, or there may be none
        steps.run([*APT_GET, "update"], QUIETLY)
        steps.run([*SATISFY, *packages], QUIETLY)
