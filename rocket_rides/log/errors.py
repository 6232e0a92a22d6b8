"""How Redis fails: what its errors mean to the log, with messages that name Redis."""

from collections.abc import Iterator
from contextlib import contextmanager

import redis


class LogFull(Exception):
    """Redis refuses to append because it is out of memory."""


class LogExhausted(Exception):
    """The stream's last entry has the greatest possible id, so none can follow."""


class Forbidden(redis.ResponseError):
    """Redis does not let this user send that command, or does not have it."""


@contextmanager
def appending_errors() -> Iterator[None]:
    """Say why Redis did not append."""
    try:
        yield
    except redis.ResponseError as error:
        # Redis 6.2 wraps the refusal in an error about the script; 7 says it plainly.
        if isinstance(error, redis.exceptions.OutOfMemoryError) or "OOM" in str(error):
            raise LogFull("Redis is out of memory and refuses to append") from None
        if "exhausted" in str(error):
            raise LogExhausted("the log ends with the greatest possible id") from None
        raise redis.ResponseError(f"Redis refuses to append to the log: {error}") from None
    except redis.RedisError as error:
        raise redis.ConnectionError(f"Redis: {error}") from None


@contextmanager
def naming_the_server() -> Iterator[None]:
    """Raise every error of Redis with a message that begins with "Redis"."""
    try:
        yield
    except redis.ResponseError as error:
        refused = isinstance(error, redis.exceptions.NoPermissionError)
        if refused or "unknown command" in str(error):
            raise Forbidden(f"Redis: {error}") from None
        raise redis.ResponseError(f"Redis: {error}") from None
    except redis.RedisError as error:
        raise redis.ConnectionError(f"Redis: {error}") from None
