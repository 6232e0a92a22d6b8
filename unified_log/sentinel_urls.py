"""URLs of Sentinels, which know which server is the log's primary.

    redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/NAME/DB?sentinel_username=...

User, password and options are Redis' own. NAME is what the Sentinels call its servers. An option
that begins with `sentinel_`, as `sentinel_password` does, is the Sentinels' own. `rediss+sentinel`
asks both over TLS, by the same `ssl_...`.
"""

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

FORM = "HOST:PORT,HOST:PORT/NAME is expected, or HOST:PORT,HOST:PORT/NAME/DB"
PORT = 26379
# No @ or : in a name: part of a password that was not encoded would be taken for one, and shown.
_URL = re.compile(
    r"(?P<scheme>rediss?)\+sentinel://(?P<login>[^@/?#]*@)?(?P<places>[^@,/?#]+(,[^@,/?#]+)*)"
    r"/(?P<name>[^@:/?#]+)(/(?P<db>[0-9]*))?(\?(?P<options>[^#]*))?"
)
_OWN = "sentinel_"


class SentinelUrl(NamedTuple):
    """The same in redis-py's own URLs."""

    name: str
    sentinels: list[str]
    server: str  # without its address


def parse(url: str) -> SentinelUrl | None:
    """None for a URL of another kind. Raises ValueError, with a message that shows none of it."""
    if not url.startswith(("redis+sentinel:", "rediss+sentinel:")):
        return None
    if not (parts := _URL.fullmatch(url)):
        raise ValueError(FORM)
    options = dict(parse_qsl(parts["options"] or "", keep_blank_values=True))
    servers = {name: value for name, value in options.items() if not name.startswith(_OWN)}
    own = {name: value for name, value in servers.items() if name.startswith("ssl_")}
    own |= {name.removeprefix(_OWN): options[name] for name in options if name.startswith(_OWN)}
    user, password = (quote(own.pop(name, ""), safe="") for name in ("username", "password"))
    login = f"{user}:{password}@" if user or password else ""
    places = [
        place if re.search(r":\w+$", place) else f"{place}:{PORT}"
        for place in parts["places"].split(",")
    ]
    scheme = parts["scheme"]
    return SentinelUrl(
        unquote(parts["name"]),
        [f"{scheme}://{login}{place}{_query(own)}" for place in places],
        f"{scheme}://{parts['login'] or ''}/{parts['db'] or ''}{_query(servers)}",
    )


def _query(options: dict[str, str]) -> str:
    return f"?{urlencode(options)}" if options else ""
