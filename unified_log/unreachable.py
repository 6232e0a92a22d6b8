"""Why no session with Postgres could be opened: each named host's own reason, in one line.

libpq tries the hosts of a URL in turn, and psycopg raises the last one's error, below which it
lists all of them, in lines with hints. The last reason alone misleads: where the primary is down,
it is that the standby is read-only.
"""

import re
from collections.abc import Iterator
from itertools import zip_longest

import psycopg
from psycopg.conninfo import conninfo_to_dict

from unified_log.errors import in_one_line

UNRESOLVED = "its name can't be resolved"
# As psycopg lists an attempt.
_ATTEMPT = re.compile(r"^- host: '?(?P<host>.*?)'?, port: '?(?P<port>.*?)'?, hostaddr: .*?: ", re.M)
# As libpq begins a reason; it may have several for one host, such as with TLS and without.
_BEGINS = re.compile(r"connection to server .*? failed: |connection (?:failed|is bad): ")
_HINT = re.compile(r"Is the server running (?:on that host|locally) and accepting .*?\?")


def why(error: psycopg.Error, url: str) -> str:
    """The reasons that `error` gives, such as "db1:5432: Connection refused; db2:5432: ...".

    `url` is the one that was connected to; no password of it is shown.
    """
    told: dict[str, dict[str, None]] = {}  # by the address; the reasons in their order, each once
    named = [address for host, port in hosts(url) if (address := _address(host, port))]
    none_resolved = str(error).startswith("failed to resolve host")
    for where, said in () if none_resolved else _attempts(error):
        address = where or (named[0] if len(named) == 1 else "")
        told[address] = told.get(address, {}) | dict.fromkeys(_reasons(said))
    # Whom psycopg could not resolve it leaves out, where it could resolve others.
    if none_resolved or (str(error).startswith("connection ") and all(told)):
        told |= {address: {UNRESOLVED: None} for address in named if address not in told}
    return "; ".join(
        f"{address}: {', and '.join(reasons)}" if address else ", and ".join(reasons)
        for address, reasons in told.items()
    ) or in_one_line(error)


def _attempts(error: psycopg.Error) -> Iterator[tuple[str, str]]:
    """Where each attempt went, empty if nothing tells; and what came of it."""
    message = str(error)
    found = [*_ATTEMPT.finditer(message)]
    if not found:
        only = error.pgconn
        yield _address(only.host.decode(), only.port.decode()) if only else "", message
    for attempt, following in zip_longest(found, found[1:]):
        end = following.start() if following else len(message)
        yield _address(attempt["host"], attempt["port"]), message[attempt.end() : end]


def _reasons(said: str) -> list[str]:
    """The reasons in what libpq said of one attempt; none of them is empty."""
    line = _HINT.sub("", in_one_line(Exception(said)))
    return [
        each.strip().removeprefix("FATAL: ") for each in _BEGINS.split(line) if each.strip()
    ] or [line]


def hosts(url: str) -> list[tuple[str, str]]:
    """The hosts of a URL, each with its port; both may be empty."""
    given = conninfo_to_dict(url)
    named = str(given.get("host") or given.get("hostaddr") or "").split(",")
    ports = str(given.get("port") or "").split(",")
    # libpq takes a single port for every host.
    return [*zip(named, ports * len(named) if len(ports) == 1 else ports, strict=False)]


def _address(host: str, port: str) -> str:
    if host in ("", "None"):
        return ""
    port = "5432" if port in ("", "None") else port
    if host.startswith("/"):
        return f"{host}/.s.PGSQL.{port}"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
