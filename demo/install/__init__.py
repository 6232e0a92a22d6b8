"""Sets up .venv. It runs before any package is installed, so it uses the standard library alone."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 (older versions get this far)
    sys.exit("Python 3.11 or newer is needed; choose one with PYTHON=...")
