"""URLs of services, checked without contacting anybody, as `unified_log.urls` does for servers."""

from pydantic import HttpUrl, TypeAdapter


def http(url: str) -> str:
    """The URL, percent-encoded as needed. Raises ValueError."""
    parsed = TypeAdapter(HttpUrl).validate_python(url)
    if parsed.username or parsed.password:
        raise ValueError("it takes no user and no password")
    return str(parsed)
