"""The log's primary, where Sentinels decide which server that is: they are asked at each connect.

A server that they have replaced may go on for seconds as if it were the primary, or for as long as
none of them reaches it. Who stays with it sees nothing new: so `require_primary` asks again.
"""

import time
from typing import Any, cast

import redis
from redis.connection import parse_url
from redis.sentinel import MasterNotFoundError, Sentinel, SentinelConnectionPool

from unified_log.log.errors import in_words
from unified_log.sentinel_urls import SentinelUrl

# Seconds for all of them: one that is away costs its share once, since then another is asked first.
TIMEOUT = 1.0
RARELY = 20.0  # times what asking took: until then nobody is asked again


class Sentinels(Sentinel):
    """Those of a URL."""

    def discover_master(self, service_name: str) -> tuple[str, int]:
        """The primary's host and port, as the first Sentinel says that knows one, and finds it up.

        As redis-py's, but for what it says when there is none. Raises MasterNotFoundError.
        """
        said = []
        for number, sentinel in enumerate(self.sentinels):
            try:
                masters = cast(dict[str, dict[str, Any]], sentinel.sentinel_masters())
            except redis.RedisError as error:
                why = in_words(error).removeprefix("Redis: ").rstrip(".")
            else:
                state = masters.get(service_name)
                if state and self.check_master_state(state, service_name):  # type: ignore[no-untyped-call]
                    self.sentinels.insert(0, self.sentinels.pop(number))
                    return state["ip"], state["port"]
                why = "it says that the primary is down" if state else "it knows no such name"
            place = sentinel.get_connection_kwargs()
            said.append(f"{place['host']}:{place['port']}: {why}")
        raise MasterNotFoundError(
            f"no Sentinel names a primary of {service_name!r} ({'; '.join(said)})"
        )


class Pool(SentinelConnectionPool):
    """Connects to the primary."""

    _quiet_until = 0.0

    def require_primary(self) -> None:
        """Raise redis.ConnectionError if the Sentinels name another one than ours.

        While they name none, there is none better.
        """
        ours, began = self.master_address, time.monotonic()
        if began < self._quiet_until:
            return
        try:
            host, port = self.sentinel_manager.discover_master(self.service_name)
        except MasterNotFoundError:
            return
        finally:
            now = time.monotonic()
            self._quiet_until = now + RARELY * (now - began)
        if (host, port) != ours:
            raise redis.ConnectionError(f"by the Sentinels, {host}:{port} is the primary now")

    def disconnect(self, inuse_connections: bool = True) -> None:
        """From the Sentinels, too."""
        super().disconnect(inuse_connections)
        self.sentinel_manager.close()


def client(url: SentinelUrl, timeout: float, **options: Any) -> redis.Redis:
    """A client with one connection, to the primary. Raises redis.RedisError."""
    given = [_options(each) for each in url.sentinels]
    places = [(each.pop("host", "localhost"), each.pop("port")) for each in given]
    limit = min(timeout, TIMEOUT) / len(places)
    limits = {"socket_connect_timeout": limit, "socket_timeout": limit}
    asking = {"protocol": 2, "retry": None, **limits}
    sentinels = Sentinels(places, sentinel_kwargs={**given[0], **asking})  # type: ignore[no-untyped-call]
    pool = Pool(  # type: ignore[no-untyped-call]
        url.name,
        sentinels,
        **_options(url.server),
        **options,
        socket_timeout=timeout,
        redis_connect_func=_log_in,
    )
    try:
        found = redis.Redis(connection_pool=pool, single_connection_client=True)
    except redis.RedisError:
        pool.disconnect()
        raise
    found.auto_close_connection_pool = True
    return found


def _options(url: str) -> dict[str, Any]:
    """A URL's, as redis-py's clients take them."""
    given: dict[str, Any] = parse_url(url)  # type: ignore[no-untyped-call]
    return {**given, "ssl": True} if given.pop("connection_class", None) else given


def _log_in(connection: redis.Connection) -> None:
    """As ever; but a server that is no primary is refused. HELLO needs no right of the user's."""
    connection.on_connect()  # type: ignore[no-untyped-call]
    connection.send_command("HELLO")  # type: ignore[no-untyped-call]
    if b"master" not in connection.read_response():
        raise redis.ConnectionError(
            f"{connection.host}:{connection.port} is a replica, but a Sentinel calls it the primary"
        )
