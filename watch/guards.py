"""Who may look, and who may change something.

A page on another site can make a visitor's browser send requests here. If it lets a name of its own
resolve to 127.0.0.1, it could also read the answers. So while the page is bound to loopback, only
requests for a loopback host are answered; and what changes anything is a POST from this page
itself, with its token. Bound to another address, the page answers requests for any host, and
changes nothing. Nor does it change anything through a proxy that names itself: whom that has let
through is not known here.
"""

import re
import secrets
from collections.abc import Iterable, Mapping
from ipaddress import ip_address

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]+)(?::\d{1,5})?")
_OF_PROXIES = {"forwarded", "via", "x-real-ip"}


def is_loopback(host: str) -> bool:
    """Whether this is a loopback address, or `localhost`."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_local(host_header: str) -> bool:
    """Whether a Host header names this machine by a loopback address or as localhost."""
    match = _HOST.fullmatch(host_header)
    return match is not None and is_loopback(match[1].lower().rstrip("."))


def is_proxied(headers: Iterable[str]) -> bool:
    """Whether a request's headers, by their names, were written by a proxy."""
    names = [name.lower() for name in headers]
    return any(name in _OF_PROXIES or name.startswith("x-forwarded-") for name in names)


def refusal(headers: Mapping[str, str], given: str, token: str) -> str:
    """Why a POST is not from this page; empty when it is.

    `headers` is looked up as HTTP does, whatever the case; `given` is the form's token.
    """
    if is_proxied(headers):
        return "read-only: this request came through a proxy"
    origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site")
    if origin is None and site is None:
        return "this request does not name the site that it comes from; a browser's does"
    if site not in (None, "same-origin", "none"):
        return "this request comes from another site"
    if origin not in (None, f"http://{headers.get('Host', '')}"):
        return "this request comes from another site"
    if not secrets.compare_digest(given.encode(errors="replace"), token.encode()):
        return "this form is from before the server was started: reload the page"
    return ""
