"""Java, installed by apt-get where this runs as root, because Spark needs it and pip has none.

Elsewhere a person is told what to install, and all but the nightly job works without.
"""

from analytics.prerequisites import java_can_be_installed, require_java
from install.steps import StepFailed, Steps
from rocket_rides.errors import Unavailable

APT_GET = ("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=60")
# `satisfy` installs nothing where the release's own Java is too old.
SATISFY = ("satisfy", "--yes", "--no-install-recommends", "default-jre-headless (>= 2:1.17)")
QUIETLY = {"DEBIAN_FRONTEND": "noninteractive"}


def is_there() -> bool:
    """Whether this machine has a Java that will do."""
    try:
        require_java()
    except Unavailable:
        return False
    return True


def install(steps: Steps) -> None:
    """See to it that there is one, or say what to install: then again at the next run."""
    if java_can_be_installed():
        try:
            try:
                steps.run([*APT_GET, *SATISFY], QUIETLY)
            except StepFailed:
                steps.run([*APT_GET, "update"], QUIETLY)
                steps.run([*APT_GET, *SATISFY], QUIETLY)
        except StepFailed:
            steps.note("apt-get can't get it now, or this release's is older than Java 17")
    try:
        require_java()
    except Unavailable as reason:
        steps.note(str(reason))
