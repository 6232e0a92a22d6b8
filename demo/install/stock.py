"""Installs PostgreSQL and Redis with apt-get if this runs as root, for the tests on stock servers.

And PgBouncer, which some tests put in between. Otherwise it says what to install. Servers that
POSTGRES_PROGRAMS and REDIS_PROGRAMS name (see `demo.embedded.stock`) are not installed.
"""

import os
import shutil
from pathlib import Path

from demo.install import debian
from demo.install.steps import StepFailed, Steps


def missing() -> list[str]:
    """The packages, by Debian's names, that have what this machine has not."""
    postgres = shutil.which("postgres") or [*Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    redis = shutil.which("redis-server") or shutil.which("valkey-server")
    has = {
        "postgresql": os.environ.get("POSTGRES_PROGRAMS") or postgres,
        "redis-server": os.environ.get("REDIS_PROGRAMS") or redis,
        # It is in root's path alone.
        "pgbouncer": shutil.which("pgbouncer") or Path("/usr/sbin/pgbouncer").exists(),
    }
    return [package for package in has if not has[package]]


def install(steps: Steps) -> None:
    """Install them, or say what to install; the next run tries again."""
    if debian.can_install():
        try:
            debian.install(steps, *missing())
        except StepFailed:
            steps.note(f"apt-get can't install {' '.join(missing())} now")
    if packages := missing():
        steps.note(
            "needed for the tests on stock servers only, and not there:"
            f" {', '.join(packages)} (Debian: apt install {' '.join(packages)})"
        )
