"""How Redis fails: what its errors mean to the log, with messages that name Redis."""

from collections.abc import Iterator
from contextlib import contextmanager

import redis

from unified_log.errors import Refused

# Redis Cluster's answers that no waiting changes: the key is elsewhere.
ELSEWHERE = ("MOVED", "ASK", "CROSSSLOT")


class LogFull(Exception):
    """Redis refuses to append because it is out of memory."""


class LogExhausted(Exception):
    """The stream's last entry has the greatest possible id, so none can follow."""


class Forbidden(redis.ResponseError):
    """Redis does not let this user send that command, or does not have it."""


class Clustered(Refused, redis.ResponseError):
    """The server is one of a Redis Cluster, and sends clients to another one."""

    def __init__(self, said: str) -> None:
        super().__init__(
            f"{said}. This is a Redis Cluster, where a stream lives on one shard: let REDIS_URL"
            " name a server that is not clustered, or is alone in its cluster"
        )


def in_words(error: redis.RedisError) -> str:
    """What Redis said, with the name of the error, which redis-py cuts off."""
    name = error.status_code
    return f"Redis: {name} {error}" if name and name != "ERR" else f"Redis: {error}"


@contextmanager
def appending_errors() -> Iterator[None]:
    """Say why Redis did not append."""
    try:
        yield
    except redis.ResponseError as error:
        if error.status_code in ELSEWHERE:
            raise Clustered(in_words(error)) from None
        # Redis 6.2 wraps the refusal in an error about the script; 7 says it plainly.
        if isinstance(error, redis.exceptions.OutOfMemoryError) or "OOM" in str(error):
            raise LogFull("Redis is out of memory and refuses to append") from None
        if "exhausted" in str(error):
            raise LogExhausted("the log ends with the greatest possible id") from None
        said = in_words(error).removeprefix("Redis: ")
        raise redis.ResponseError(f"Redis refuses to append to the log: {said}") from None
    except redis.RedisError as error:
        raise redis.ConnectionError(in_words(error)) from None


@contextmanager
def naming_the_server() -> Iterator[None]:
    """Raise every error of Redis with a message that begins with "Redis" and the error's name."""
    try:
        yield
    except redis.ResponseError as error:
        said = in_words(error)
        if error.status_code in ELSEWHERE:
            raise Clustered(said) from None
        refused = isinstance(error, redis.exceptions.NoPermissionError)
        if refused or "unknown command" in str(error):
            raise Forbidden(said) from None
        raise redis.ResponseError(said) from None
    except redis.RedisError as error:
        raise redis.ConnectionError(in_words(error)) from None
