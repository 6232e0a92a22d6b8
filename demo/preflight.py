"""What is asked, and said, before a fleet's first process starts.

A process that its settings keep from working would end at once. honcho then ends all of them, and
the reason would stand among two dozen lines about signals.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from demo.embedded import ports, stock
from rocket_rides.settings import Settings, require_signing_secrets
from unified_log import sentinel_urls


def require_room(config: Settings) -> None:
    """Raise NeverStarts if a whole fleet can't have its folder, its ports or its servers here."""
    stock.require()
    ports.require_free(config)


def require_secrets(config: Settings, processes: Collection[str]) -> None:
    """End this process if one of those to be started would, for want of a secret."""
    if any(name.startswith("receipts") for name in processes):
        require_signing_secrets(config)


def servers(config: Settings, origins: Mapping[str, Path]) -> list[str]:
    """Which Postgres and which Redis a fleet uses, a line each, without a password.

    `origins` names the file in which a variable is set; any other is set in the environment.
    """
    postgres = redis = f"embedded, in {config.data_dir.absolute()}"
    if config.database_url:
        postgres = _postgres(config.database_url) + _set("DATABASE_URL", origins)
    if config.redis_url:
        redis = _redis(config.redis_url) + _set("REDIS_URL", origins)
    return [f"Postgres: {postgres}", f"Redis: {redis}"]


def _set(name: str, origins: Mapping[str, Path]) -> str:
    return f" ({name} in {origins.get(name, 'the environment')})"


def _postgres(url: str) -> str:
    """As libpq sees it, which takes what a URL leaves out from its own variables, such as PGHOST.

    psycopg and redis are imported only for a URL: a fleet on its own servers starts without them.
    """
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.pq import Conninfo

    given = {each.keyword.decode(): (each.val or b"").decode() for each in Conninfo.get_defaults()}
    given |= {name: str(value) for name, value in conninfo_to_dict(url).items()}
    hosts = (given["hostaddr"] or given["host"] or "this machine's socket").split(",")
    ports = given["port"].split(",")
    ports = ports if len(ports) == len(hosts) else ports * len(hosts)  # one may be for all
    places = [f"{host} port {port or 5432}" for host, port in zip(hosts, ports, strict=False)]
    return f"database {given['dbname'] or given['user']} at {' or '.join(places)}"


def _redis(url: str) -> str:
    from redis.connection import parse_url

    asked = sentinel_urls.parse(url)
    given = parse_url(asked.server if asked else url)  # type: ignore[no-untyped-call]
    place = f"at {given.get('host', 'localhost')} port {given.get('port', 6379)}"
    where = f"at {given['path']}" if "path" in given else place
    if asked:
        places = [urlsplit(each) for each in asked.sentinels]
        named = " or ".join(f"{place.hostname} port {place.port}" for place in places)
        where = f"of the primary of {asked.name}, as Sentinel says at {named}"
    return f"database {given.get('db', 0)} {where}"
