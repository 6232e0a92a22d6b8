"""The packages that only a run needs. A fleet starts without them, and gets them later."""

import importlib
import importlib.util

from rocket_rides.errors import Unavailable

NEEDED = ("pyspark", "py4j", "pyarrow", "adbc_driver_postgresql", "matplotlib")


def require_packages() -> None:
    """Raise Unavailable, with one line that says what to do, when one is not installed."""
    importlib.invalidate_caches()  # or what was installed a moment ago might not be seen
    for name in NEEDED:
        if importlib.util.find_spec(name) is None:
            raise Unavailable(f"{name} is not installed (`make reconcile` does that)")
