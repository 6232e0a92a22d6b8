"""The same world, as a role sees it that owns nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tests.support.world import World


@contextmanager
def as_role(world: World, rights: str = "", options: str = "") -> Iterator[World]:
    """For a role with these rights alone, in which `{role}` is its name."""
    role = f"{world.stream}_role"
    made = f"CREATE ROLE {role} LOGIN {options}; {rights.format(role=role)}"
    world.connection.execute(made.encode(), prepare=False)
    url = world.postgres_url.replace("postgres@", f"{role}@")
    try:
        yield replace(world, postgres_url=url, own_connection=None)
    finally:
        gone = f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}"
        world.connection.execute(gone.encode(), prepare=False)
