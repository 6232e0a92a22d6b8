"""Whether a run can start: a fleet is set up without Java and Spark's packages.

They take 400 MB, and only the reconciliation needs them. Without them a run refuses to start, with
one line (`analytics.reconcile`). Nothing is installed here, and to ask about Java, an installer
needs only the standard library.
"""

import importlib
import importlib.util
import os
import re
import shutil
import subprocess

from analytics.foreign import without_javas
from unified_log.errors import Unavailable

PACKAGES = ("pyspark", "py4j", "pyarrow", "adbc_driver_postgresql", "deltalake")
OLDEST_SPARK = 4
OLDEST_JAVA = 17
WANTED = f"Java {OLDEST_JAVA} or newer is needed, for the reconciliation only"


def require_packages() -> None:
    """Raise Unavailable, with one line that says what to do, if a package is missing or too old."""
    importlib.invalidate_caches()  # or a package installed a moment ago might not be seen
    for name in PACKAGES:
        if importlib.util.find_spec(name) is None:
            raise Unavailable(f"{name} is not installed (`make reconcile` installs it)")
    # Not the installed one's metadata: spark-submit brings a PySpark of its own, without any.
    import pyspark

    if int(pyspark.__version__.partition(".")[0]) < OLDEST_SPARK:
        found = f"{pyspark.__path__[0]} is PySpark {pyspark.__version__}"
        raise Unavailable(f"PySpark {OLDEST_SPARK}.0 or newer is needed; {found}")


def require_java() -> None:
    """Raise Unavailable, with one line that says what to install, if there is no suitable Java."""
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    try:
        if java is None:
            raise FileNotFoundError
        answer = subprocess.run(
            [java, "-version"],
            env=without_javas(),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        none = f"there is none in JAVA_HOME, {home}" if home else "there is none"
        raise Unavailable(f"{WANTED}; {none} (Debian: apt install default-jre-headless)") from None
    # "1.8.0_402" before Java 9, "17.0.15" since.
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    if version is None or int(version[1]) < OLDEST_JAVA:
        named = version[1] if version else "of an unknown version"
        raise Unavailable(f"{WANTED}; {java} is Java {named}")
