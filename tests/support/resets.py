"""Makes totals wrong, and asks consumers for resets."""

from decimal import Decimal

from consumers.totals.total import Total
from tests.support.world import Consumer, World, counts_its_rides, eventually
from unified_log.readers.round import Round

WRONG, WRONG_RIDES = Decimal("777.777"), 77

RECONCILE = """
    INSERT INTO reconciliations (position, total_distance, rides, duration_seconds, compared)
    SELECT cell_start() + %s, coalesce(sum(distance), 0), count(*), 1.5, '{}'
    FROM rides WHERE id <= cell_start() + %s
    RETURNING id
"""
ASK = "INSERT INTO resets (reconciliation_id, consumer_name) VALUES (%s, %s)"


def ask(world: World, upto: int | None = None, name: str = "consumer0") -> int:
    """Reconcile up to the cell's so manieth ride, or to last_sent, and ask for a reset.

    Returns its number.
    """
    if upto is None:
        upto = world.value("SELECT last_sent_id - cell_start() FROM streamer_state")
    reconciliation = world.value(RECONCILE, upto, upto)
    world.connection.execute(ASK, [reconciliation, name])
    return reconciliation


def corrupt(world: World, ride: int | None = None) -> None:
    """Give all consumers a wrong total and, if given, the cell's so manieth ride, a wrong one."""
    world.connection.execute(
        "UPDATE consumer_states SET total_distance = %s, rides = %s", [WRONG, WRONG_RIDES]
    )
    if ride is not None:
        world.connection.execute("UPDATE checkpoints SET position = cell_start() + %s", [ride])


def statuses(world: World) -> list[str]:
    query = "SELECT status FROM resets ORDER BY reconciliation_id"
    return [row[0] for row in world.connection.execute(query)]


def exact(world: World, consumer: Consumer | None = None) -> bool:
    """Whether the consumer has the exact total once it has nothing more to do."""
    consumer = consumer or world.consumer()
    eventually(lambda: consumer.run_once() == Round(), "nothing more to do")
    stands_right = consumer.standing == world.standing() == world.truth
    return stands_right and counts_its_rides(world, consumer)


def half_way(world: World) -> Consumer:
    """A consumer with a wrong total that has read three entries of six."""
    world.send(*range(1, 7))
    world.consumer(batch_size=3).run_once()
    corrupt(world)
    total = Total(world.connect(lock_timeout="10s"), "consumer0")
    return Consumer(world.log(), total, batch_size=3)
