"""A database that does something else, or fails, where a test wants it to."""

from tests.support.world import World


def trigger(world: World, name: str, event: str, body: str) -> None:
    """Run the statements of `body`, in PL/pgSQL, for each row of an event.

    The event is one like `BEFORE INSERT ON rides`, or, at the commit, `AFTER INSERT ON rides
    DEFERRABLE INITIALLY DEFERRED`.
    """
    kind = "CONSTRAINT TRIGGER" if event.endswith("DEFERRED") else "TRIGGER"
    world.connection.execute(
        f"""
        CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$;
        CREATE {kind} {name} {event} FOR EACH ROW EXECUTE FUNCTION {name}()
        """,
        prepare=False,
    )
