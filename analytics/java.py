"""Java, which Spark needs and nothing else does."""

import os
import re
import shutil
import subprocess

from rocket_rides.errors import Unavailable

OLDEST = 17
WANTED = f"Java {OLDEST} or newer is needed for the reconciliation, and for nothing else"


def require_java() -> None:
    """Raise Unavailable, with one line that says what to install, when Spark could not start."""
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    try:
        if java is None:
            raise FileNotFoundError
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        at = f"there is none in JAVA_HOME, {home}" if home else "there is none"
        raise Unavailable(f"{WANTED}; {at} (Debian: apt install default-jre-headless)") from None
    # "1.8.0_402" before Java 9, "17.0.15" since.
    found = re.search(r'version "(?:1\.)?(\d+)', told.stderr)
    if found is None or int(found[1]) < OLDEST:
        version = found[1] if found else "of an unknown version"
        raise Unavailable(f"{WANTED}; {java} is Java {version}")


if __name__ == "__main__":
    try:
        require_java()
    except Unavailable as reason:
        raise SystemExit(str(reason)) from None
