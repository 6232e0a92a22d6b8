"""The variables that libpq reads, as this libpq says."""

import re
from pathlib import Path

import psycopg
from psycopg.pq import Conninfo

IN_CODE = re.compile(rb"\0(PG(?!RES_)[A-Z_]{3,})(?=\0)")  # but for the names of results


def variables() -> set[str]:
    """Those of its options; and, where psycopg brings its own libpq, those in its code."""
    options = {option.envvar.decode() for option in Conninfo.get_defaults() if option.envvar}
    libraries = Path(psycopg.__file__).parents[1].glob("psycopg_binary.libs/libpq-*")
    code = b"".join(library.read_bytes() for library in libraries)
    return options | {name.decode() for name in IN_CODE.findall(code)}
