"""URLs of Postgres that name several hosts, of which the last one is there."""

from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

from tests.support.world import World

SECRET = "s3cret"  # noqa: S105


def url_of(world: World, *before: str, **options: str) -> str:
    """The world's database at `before`, such as 127.0.0.1:1, and then where it really is."""
    given = {name: str(value) for name, value in conninfo_to_dict(world.postgres_url).items()}
    given |= options
    hosts = [each.rpartition(":") for each in before]
    places = {
        "host": ",".join([*(host for host, _, _ in hosts), given.pop("host")]),
        "port": ",".join([*(port for _, _, port in hosts), given.pop("port")]),
        "user": given.pop("user", "postgres"),
        "password": SECRET,
    }
    query = "&".join(f"{name}={quote(value)}" for name, value in (places | given).items())
    return f"postgresql:///?{query}"
