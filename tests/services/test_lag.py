"""GET /consumers: every reader of the log, of whatever kind, and how far it is behind."""

from typing import Any

from api import consumers
from api.database import SESSION
from lab.ports import free_ports
from tests.support.api import Api
from tests.support.engine import all_shown, unhurried
from tests.support.world import World, catch_up, drain
from unified_log.log import START
from unified_log.streamer.trimming import Caps, Trimmer

AGES = """
    UPDATE rides SET created_at = now() - make_interval(secs => 100000 - 1000 * (id - cell_start()))
"""
OUTSIDE = """
    INSERT INTO checkpoints (kind, name, position)
    SELECT 'outside', to_char(n, 'fm00'), cell_start() + 10000 * n
    FROM generate_series(0, 10) n
"""
MANY = "INSERT INTO rides (distance) SELECT 1 FROM generate_series(1, %s)"
ROLLED_UP = "INSERT INTO checkpoints (kind, name, position) VALUES ('rollup', 'rollup', %s)"
COMPLETE = "UPDATE rollup_state SET complete_to = %s"

DELIVERED = """
    INSERT INTO receipts (ride_id, outcome, attempts, decided_at)
    SELECT id, 'delivered', 1, now() FROM unnest(%s::bigint[]) id
    ON CONFLICT (ride_id) DO UPDATE SET outcome = 'delivered', decided_at = now(), lease = NULL
"""
IN_THE_INBOX = "INSERT INTO receipts (ride_id) SELECT id FROM rides ON CONFLICT DO NOTHING"
SWEPT = "UPDATE receipts_state SET inbox_to = %(upto)s, complete_to = %(upto)s"

Shown = dict[str, Any]


def shown(world: World, name: str) -> Shown:
    """The reader of that name, as it is shown now."""
    [reader] = [reader for reader in all_shown(world) if reader["name"] == name]
    return reader


def lag(world: World, name: str = "receipts") -> tuple[int | None, int | None]:
    """In rides, and in seconds, rounded."""
    reader = shown(world, name)
    seconds = reader["seconds_behind"]
    return reader["records_behind"], seconds if seconds is None else round(seconds, -3)


def send(world: World, rides: int) -> list[str]:
    """Send rides, the nth of which is 100,000 - 1000 n seconds old; returns the entries' ids."""
    world.take(*[1] * rides)
    world.connection.execute(AGES)
    drain(world.streamer())
    return [entry.redis_id for entry in world.log().read(START, 100_000)]


def trim_all(world: World) -> None:
    Trimmer(world.connection, world.log(), Caps(1000, 0)).trim()
    assert world.log().length() == 0


def test_a_checkpoint_lags_by_the_rides_that_it_has_not_counted(world: World) -> None:
    slow, fast = world.consumer("slow", batch_size=3), world.consumer("fast")
    assert lag(world, "slow") == (0, 0)
    send(world, 10)
    slow.run_once()
    catch_up(fast)
    assert lag(world, "slow") == (7, 96_000)  # the fourth ride is the oldest of seven
    assert lag(world, "fast") == (0, 0)
    assert shown(world, "fast")["kind"] == "total"
    # Not even the streamer has it yet, and every consumer lags by it.
    world.take(1)
    rides, seconds = shown(world, "fast")["records_behind"], shown(world, "fast")["seconds_behind"]
    assert rides == 1
    assert 0 <= seconds < 60


def test_the_rollup_lags_by_the_rides_whose_minutes_are_not_made(world: World) -> None:
    send(world, 10)
    world.connection.execute(ROLLED_UP, [world.start + 10])
    world.connection.execute(COMPLETE, [world.start + 6])
    world.consumer("rollup")  # a total of that name
    by_kind = {reader["kind"]: reader for reader in all_shown(world)}
    total, rollup = by_kind["total"], by_kind["rollup"]
    assert (total["kind"], total["records_behind"], total["total_distance"]) == ("total", 10, 0)
    assert (rollup["kind"], rollup["records_behind"], rollup["total_distance"]) == (
        "rollup",
        4,
        None,
    )
    assert round(rollup["seconds_behind"], -3) == 93_000
    world.connection.execute(COMPLETE, [world.start + 10])
    world.connection.execute("DELETE FROM consumer_states")
    world.connection.execute("DELETE FROM checkpoints WHERE kind = 'total'")
    assert lag(world, "rollup") == (0, 0)


def test_the_receipts_lag_by_those_that_are_to_come(world: World) -> None:
    """Wherever their entries are: nobody asks Redis."""

    def deliver(*rides: int) -> None:
        world.connection.execute(DELIVERED, [[world.start + ride for ride in rides]])

    def sweep(upto: int) -> None:
        world.connection.execute(SWEPT, {"upto": world.start + upto})

    def last_ride() -> int:
        last: int = shown(world, "receipts")["last_ride_id"]
        return last - world.start

    assert lag(world) == (0, 0)
    send(world, 10)
    assert lag(world) == (10, 99_000)
    assert shown(world, "receipts")["last_ride_id"] == 0
    deliver(1, 2, 4)
    assert lag(world) == (7, 97_000)
    reader = shown(world, "receipts")
    assert (reader["kind"], last_ride(), reader["total_distance"]) == ("group", 2, None)
    trim_all(world)
    assert lag(world) == (7, 97_000)
    world.connection.execute(IN_THE_INBOX)
    assert lag(world) == (7, 97_000)
    sweep(2)
    deliver(3, 5, 6, 7, 8, 9)
    assert lag(world) == (1, 90_000)
    deliver(10)
    assert lag(world) == (0, 0)
    sweep(10)
    assert lag(world) == (0, 0)
    world.take(1)  # has not been sent yet
    assert lag(world) == (1, 0)
    assert last_ride() == 10


def test_lags_cost_the_same_however_large_and_however_many_they_are(world: World) -> None:
    world.connection.execute(MANY, [100_500])
    world.connection.execute(OUTSIDE)
    connection = world.connect(**unhurried(SESSION))  # as the API's are
    lags = [reader["records_behind"] for reader in all_shown(world)]
    assert lags == [100_000, *range(90_500, 0, -10_000), 100_000]  # the last one is the receipts'
    plan = connection.execute(
        f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {consumers.CONSUMERS}"
    ).fetchone()
    assert plan is not None
    assert 100_000 < rides_read(plan[0][0]["Plan"]) < 201_000


def rides_read(plan: dict[str, Any]) -> int:
    """How many rows of `rides` a plan has visited in all."""
    of_rides = plan.get("Relation Name") == "rides"
    own = int(plan["Actual Rows"] * plan["Actual Loops"]) if of_rides else 0
    return own + sum(map(rides_read, plan.get("Plans", [])))


def test_a_ride_of_no_finite_age_makes_the_seconds_unknown(world: World) -> None:
    world.consumer()
    first, _ = world.take(1, 1)
    world.connection.execute(f"UPDATE rides SET created_at = '-infinity' WHERE id = {first}")
    assert lag(world, "consumer0") == (2, None)
    world.connection.execute(f"UPDATE rides SET created_at = now() + '1 day' WHERE id = {first}")
    assert lag(world, "consumer0") == (2, 0)


def test_the_api_does_not_depend_on_redis(world: World) -> None:
    api = Api(world, REDIS_URL=f"redis://127.0.0.1:{free_ports()}")
    world.consumer()
    assert api.post("5").status_code == 201
    assert api.ready()
    shown = api.client.get("/consumers").json()["consumers"]
    assert [(each["name"], each["records_behind"]) for each in shown] == [
        ("consumer0", 1),
        ("receipts", 1),
    ]
    api.client.close()
