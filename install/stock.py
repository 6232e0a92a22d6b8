"""Installs PostgreSQL and Redis with apt-get if this runs as root, for the tests on stock servers.

And PgBouncer, which some tests put in between. Otherwise it says what to install.
"""

import shutil
from pathlib import Path

from install import debian
from install.steps import StepFailed, Steps
from rocket_rides.debian import can_install

PACKAGES = ("postgresql", "redis-server", "pgbouncer")
# The first is below a folder for its version; the last is in no user's path but root's.
PLACES = ("/usr/lib/postgresql", "/usr/bin/redis-server", "/usr/sbin/pgbouncer")


def is_there() -> bool:
    """Whether this machine has all of them, as Debian has them or otherwise."""
    return all(Path(place).exists() or shutil.which(Path(place).name) for place in PLACES)


def install(steps: Steps) -> None:
    """Install them, or say what to install; the next run tries again."""
    if can_install():
        try:
            debian.install(steps, *PACKAGES)
        except StepFailed:
            steps.note("apt-get can't install PostgreSQL, Redis and PgBouncer now")
    if not is_there():
        steps.note(
            "PostgreSQL, Redis and PgBouncer are needed, for the tests on stock servers only"
            f" (Debian: apt install {' '.join(PACKAGES)})"
        )
