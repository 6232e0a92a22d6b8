"""Sets up .venv, with nothing but Python's own library: it runs before there is anything else."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 (older ones get to here)
    sys.exit("Python 3.11 or newer is needed; name one with PYTHON=...")
