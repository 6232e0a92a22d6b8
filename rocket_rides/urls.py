"""Can a server's URL ever work? Everything that can be checked without contacting the server.

The libraries' own parsers come first. Whatever they accept, only to fail at every attempt to
connect, is checked here. A refusal is a ValueError; its message never shows anything that may be a
password.

psycopg and redis are imported where they are needed, since not every process uses both.
"""

import re
import socket
import ssl
from typing import Any
from urllib.parse import parse_qsl, urlsplit

# libpq reads these only once it has an address to connect to, and some of them only over TCP.
WHOLE_NUMBERS = (
    "connect_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
)

# The options of redis-py that a URL may set. The others are Python objects, or belong to the
# services: how often a command is retried, and the format of replies.
REDIS_OPTIONS = {
    "client_name",
    "db",
    "health_check_interval",
    "password",
    "socket_connect_timeout",
    "socket_timeout",
    "username",
}
REDIS_TCP_OPTIONS = {"socket_keepalive"}
REDIS_TLS_OPTIONS = {
    "ssl_ca_certs",
    "ssl_ca_path",
    "ssl_cert_reqs",
    "ssl_certfile",
    "ssl_check_hostname",
    "ssl_keyfile",
    "ssl_min_version",
    "ssl_password",
}
# Seconds. A consumer blocks in Redis for half a second at a time, which must not time out.
SHORTEST_TIMEOUT, LONGEST_TIMEOUT = 1, 3600

# What RFC 3986 lets a URL consist of; anything else must be percent-encoded.
URL_CHARACTERS = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+")

UNQUOTED = "a /, ?, # or % in a user's name or a password must be percent-encoded"


def require_postgres(url: str) -> None:
    """Raise ValueError when libpq could never connect with this URL, and its environment."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    if not url.startswith(("postgresql://", "postgres://")):
        raise ValueError("a postgresql:// URL is expected")
    try:
        given = conninfo_to_dict(url)
    except ProgrammingError as error:
        reason, _, quoted = str(error).strip().partition(': "')
        if "query parameter" in reason and "@" not in urlsplit(url).query:
            reason = f'{reason}: "{quoted}'
        raise ValueError(reason) from None
    _require_options_of_libpq(given)
    options = _with_defaults(given)
    for port in options.get("port", "").split(","):
        if port and not (port.isdecimal() and 1 <= int(port) <= 65535):
            raise ValueError(f"a port is a number from 1 to 65535; {UNQUOTED}")
    for name in WHOLE_NUMBERS:
        if not re.fullmatch(r"[+-]?[0-9]{1,9}|", options.get(name, "")):
            raise ValueError(f"{name} must be a whole number")
    for address in options.get("hostaddr", "").split(","):
        _require_address(address)
    file = options.get("sslrootcert", "system")
    if options["sslmode"] in ("verify-ca", "verify-full") and file != "system":
        _require_authorities("sslrootcert", file)


def _with_defaults(given: dict[str, Any]) -> dict[str, str]:
    """The options in the URL, and those that libpq takes from the environment."""
    from psycopg.pq import Conninfo

    defaults = {
        option.keyword.decode(): option.val.decode()
        for option in Conninfo.get_defaults()
        if option.val
    }
    return defaults | {name: str(value) for name, value in given.items()}


def _require_options_of_libpq(given: dict[str, Any]) -> None:
    """Have libpq check the options itself, without ever looking up a host.

    It checks the ports last and stops at an invalid one, so this gives it invalid ports only.
    """
    from psycopg.conninfo import make_conninfo
    from psycopg.pq import PGconn

    ports = ",".join("0" for _ in str(given.get("port", "")).split(","))
    attempt = PGconn.connect_start(make_conninfo("", **{**given, "port": ports}).encode())
    refusal = attempt.get_error_message().strip()
    attempt.finish()
    if 'invalid port number: "0"' not in refusal:
        raise ValueError(" ".join(refusal.split()))


def _require_address(address: str) -> None:
    try:
        if address:
            socket.getaddrinfo(address, None, flags=socket.AI_NUMERICHOST)
    except OSError:
        raise ValueError("hostaddr must be an IP address") from None


def _require_authorities(option: str, file: str) -> None:
    """The libraries read it when they connect, and name neither the option nor always the file."""
    try:
        ssl.create_default_context(cafile=file)
    except ssl.SSLError:
        raise ValueError(f"{option}: there is no certificate in {file}") from None
    except OSError as error:
        raise ValueError(f"{option}: can't read {file}: {error.strerror}") from None


def require_redis(url: str) -> None:
    """Raise ValueError when redis-py could never connect with this URL."""
    from redis import ConnectionPool, RedisError
    from redis.connection import parse_url

    parts = urlsplit(url)
    try:
        _ = parts.port
    except ValueError:
        raise ValueError(f"its port is not a number up to 65535; {UNQUOTED}") from None
    given = parse_url(url)  # type: ignore[no-untyped-call]
    if not (given.get("host") or given.get("path")):
        raise ValueError("it names neither a host nor a socket")
    _require_options_of_redis(parts.scheme, parts.query)
    if parts.scheme != "unix" and not re.fullmatch(r"(/[0-9]*)?/?", parts.path):
        raise ValueError("its path must be the number of a database, such as /0")
    _require_values_of_redis(given)
    try:
        ConnectionPool.from_url(url).make_connection()
    except RedisError as error:
        raise ValueError(" ".join(str(error).split())) from None


def _require_options_of_redis(scheme: str, query: str) -> None:
    taken = REDIS_OPTIONS
    if scheme != "unix":
        taken = taken | REDIS_TCP_OPTIONS
    if scheme == "rediss":
        taken = taken | REDIS_TLS_OPTIONS
    names = {name for name, _ in parse_qsl(query, keep_blank_values=True)}
    unknown = sorted(names - taken)
    if unknown and "@" in query:
        raise ValueError(UNQUOTED)
    if unknown:
        raise ValueError(
            f"{', '.join(unknown)} can't be set in a {scheme}:// URL;"
            f" these can: {', '.join(sorted(taken))}"
        )


def _require_values_of_redis(given: dict[str, Any]) -> None:
    for name in ("socket_timeout", "socket_connect_timeout"):
        if not SHORTEST_TIMEOUT <= given.get(name, SHORTEST_TIMEOUT) <= LONGEST_TIMEOUT:
            raise ValueError(f"{name} must be from {SHORTEST_TIMEOUT} to {LONGEST_TIMEOUT} seconds")
    if given.get("db", 0) < 0:
        raise ValueError("db must be the number of a database, such as 0")
    try:
        given.get("host", "").encode("idna")
    except UnicodeError:
        raise ValueError("its host is not a valid host name") from None
    if "ssl_min_version" in given:
        ssl.TLSVersion(given["ssl_min_version"])
    if "ssl_ca_certs" in given:
        _require_authorities("ssl_ca_certs", given["ssl_ca_certs"])


def require_receiver(url: str) -> None:
    """Raise ValueError when no receipt could ever be delivered to this URL."""
    if not url.startswith(("http://", "https://")):
        raise ValueError("an http:// or https:// URL is expected")
    if not URL_CHARACTERS.fullmatch(url):
        raise ValueError("what is no ASCII letter, digit or URL punctuation must be encoded")
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ValueError("it takes no user and no password: receipts are signed instead")
    if "#" in url:
        raise ValueError("what follows a # is never sent")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("its port must be a number from 1 to 65535") from None
    if port == 0 or parts.netloc.endswith(":"):
        raise ValueError("its port must be a number from 1 to 65535")
    if not host or re.search(r"[^a-z0-9.:_-]|\.\.|^[.-]", host):
        raise ValueError("it names no host")
