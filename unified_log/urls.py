"""URLs of servers, checked without contacting anybody.

The libraries' own parsers come first. Some URLs that they accept would show a password, or fail
later without a clear error: those are refused here. A refusal is a ValueError; its message never
shows anything that may be a password. Whatever else is wrong with a URL is reported by its server
or its library, at each attempt to connect.

psycopg and redis are imported where they are needed, since not every process uses both.
"""

import re
from urllib.parse import parse_qsl, urlsplit

from unified_log import sentinel_urls

# The options of redis-py that a URL may set. The others are Python objects, or belong to the
# processes: their time-outs, how often a command is retried, and the format of replies.
REDIS_OPTIONS = {
    "client_name",
    "db",
    "password",
    "socket_keepalive",
    "ssl_ca_certs",
    "ssl_ca_path",
    "ssl_cert_reqs",
    "ssl_certfile",
    "ssl_check_hostname",
    "ssl_keyfile",
    "ssl_password",
    "username",
}
REDIS_SCHEMES = "redis://", "rediss://", "unix://"
REDIS_FORMS = f"{', '.join(REDIS_SCHEMES)}, rediss+sentinel:// or redis+sentinel://"
UNQUOTED = "a /, ?, # or % in a user's name or a password must be percent-encoded"


def postgres(url: str) -> str:
    """A URL as libpq reads it, also made from SQLAlchemy's form. Raises ValueError."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    url = url.replace("postgresql+psycopg://", "postgresql://")
    if not url.startswith(("postgresql://", "postgres://")):
        raise ValueError("a postgresql:// URL is expected")
    try:
        given = conninfo_to_dict(url)
    except ProgrammingError as error:
        reason, _, quoted = str(error).strip().partition(': "')
        if "query parameter" in reason and "@" not in url.partition("?")[2]:
            reason = f'{reason}: "{quoted}'
        raise ValueError(reason) from None
    for port in str(given.get("port", "")).split(","):
        if port and not (port.isdecimal() and 1 <= int(port) <= 65535):
            raise ValueError(f"a port is a number from 1 to 65535; {UNQUOTED}")
    return url


def redis(url: str) -> str:
    """Check a URL of redis-py's, or of Sentinels (`sentinel_urls`). Raises ValueError."""
    from redis import ConnectionPool, RedisError
    from redis.connection import parse_url

    try:
        asked = sentinel_urls.parse(url)
    except ValueError as reason:
        raise ValueError(f"{reason}; {UNQUOTED}") from None
    if asked:
        for each in (asked.server, *asked.sentinels):
            redis(each)
        return url
    if not url.startswith(REDIS_SCHEMES):
        raise ValueError(f"{REDIS_FORMS} is expected")
    parts = urlsplit(url)
    try:
        _ = parts.port
    except ValueError:
        raise ValueError(f"its port is not a number up to 65535; {UNQUOTED}") from None
    given = parse_url(url)  # type: ignore[no-untyped-call]
    if not {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)} <= REDIS_OPTIONS:
        known = ", ".join(sorted(REDIS_OPTIONS))
        own = "for Sentinels, each with sentinel_ before it, too"
        raise ValueError(f"only these of its options can be set: {known}; {own}; {UNQUOTED}")
    if parts.scheme != "unix" and not re.fullmatch(r"(/[0-9]*)?/?", parts.path):
        raise ValueError("its path must be the number of a database, such as /0")
    try:
        given.get("host", "").encode("idna")
    except UnicodeError:
        raise ValueError("its host is not a valid host name") from None
    try:
        ConnectionPool.from_url(url).make_connection()
    except TypeError:
        raise ValueError(f"not all of its options go with {parts.scheme}://") from None
    except RedisError as error:
        raise ValueError(" ".join(str(error).split())) from None
    return url
