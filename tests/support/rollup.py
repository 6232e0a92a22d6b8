"""A rollup in the test's own process, and the check of its result."""

from decimal import Decimal

from consumers.rollup.lead import Lead
from consumers.rollup.minutes import SESSION
from rocket_rides.locks import Lock
from tests.support.world import World, drain, take
from unified_log.locks import try_lock

KEPT = "SELECT minute::text, rides, distance FROM ride_minutes WHERE rides > 0 ORDER BY minute"
TRUE = """
    SELECT date_trunc('minute', created_at)::text AS minute, count(*), sum(distance)
    FROM rides WHERE isfinite(created_at) GROUP BY 1 ORDER BY min(created_at)
"""


def take_at(world: World, *rides: tuple[str, str | float]) -> list[int]:
    """Take rides that were requested at these times, without sending them."""
    moments, distances = zip(*rides, strict=True)
    return take(world.connection, *distances, moments=moments)


def send_at(world: World, *rides: tuple[str, str | float]) -> list[int]:
    """Take rides that were requested at these times, and send them."""
    taken = take_at(world, *rides)
    drain(world.streamer())
    return taken


def lead(world: World, batch_size: int = 1000) -> Lead:
    """A lead on connections of its own; it has the lock unless another one has it."""
    connection, indexer_connection = world.connect(**SESSION), world.connect(**SESSION)
    try_lock(connection, Lock.ROLLUP)
    return Lead(connection, world.log(), indexer_connection, world.log(), batch_size)


def work(leading: Lead) -> bool:
    """One round of each loop, one after the other; returns what the indexer's did."""
    leading.run_once()
    return leading.indexer.run_once(leading.reader.at.position)


def hurry(leading: Lead) -> None:
    """Mark and compute, without a pause, until nothing is left to do."""
    while True:
        before = leading.reader.at, leading.dirty.count, leading.generation.complete_to
        work(leading)
        after = leading.reader.at, leading.dirty.count, leading.generation.complete_to
        if after == before and not leading.dirty.count:
            return


def kept(world: World) -> list[tuple[str, int, Decimal]]:
    world.connection.execute("SET timezone = 'UTC'")
    return world.connection.execute(KEPT).fetchall()


def exact(world: World) -> bool:
    """Whether every minute has exactly its rides."""
    world.connection.execute("SET timezone = 'UTC'")
    return kept(world) == world.connection.execute(TRUE).fetchall()


def complete_to(world: World) -> int:
    return world.value("SELECT complete_to FROM rollup_state")


def is_complete(world: World) -> bool:
    """Whether every minute is right up to the newest ride, and complete_to says so."""
    return complete_to(world) == world.truth[0] and exact(world)


def icks(world: World) -> set[str]:
    """The generations that have an Ick in Redis."""
    names = world.log().redis.keys(f"{world.stream}/rollup/*")
    return {name.decode().split("/")[2] for name in names if isinstance(name, bytes)}
