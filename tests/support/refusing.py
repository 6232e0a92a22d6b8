"""What a consumer holds out, and how Postgres is made to refuse a record."""

from typing import Any

from tests.support.world import World

HELD = "SELECT position, sqlstate, reason, attempts, retry FROM held_out_records ORDER BY position"


def held(world: World) -> list[tuple[Any, ...]]:
    return world.connection.execute(HELD).fetchall()


def positions(world: World) -> list[int]:
    return [row[0] for row in held(world)]


def refuse(world: World, distance: int, how: str, when: str = "BEFORE") -> None:
    """Have Postgres refuse to list rides of this distance."""
    constraint = "CONSTRAINT" if when != "BEFORE" else ""
    world.connection.execute(
        f"""
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN {how}; RETURN NEW; END $$;
        CREATE {constraint} TRIGGER refuse {when} INSERT ON listed
        {"DEFERRABLE INITIALLY DEFERRED" if constraint else ""}
        FOR EACH ROW WHEN (NEW.distance = {distance}) EXECUTE FUNCTION refuse()
        """,
        prepare=False,
    )
