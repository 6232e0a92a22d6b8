"""What `breaking` calls healed, and what it cuts, on real servers."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import psutil
import pytest

from demo.breaking import healing
from demo.breaking.healing import Healing, Kind, NotHealed, Say
from demo.breaking.running_fleet import (
    RECEIPTS,
    ROLLUP,
    SIMULATOR,
    TOTALS,
    RunningFleet,
    Service,
)
from demo.breaking.target import Target
from tests.support.world import World, catch_up, drain, take
from unified_log.errors import Unavailable
from unified_log.words import number

OUTCOME = """
    INSERT INTO receipts (ride_id, outcome, attempts, reason, due_at, decided_at)
    VALUES (cell_start() + %(ride)s, %(outcome)s, 1, 'status 503: in a bad mood', now(),
            CASE WHEN %(outcome)s::text IS NOT NULL THEN now() END)
"""


def a_fleet(*consumers: str, also: Iterable[str] = ()) -> RunningFleet:
    ourselves = psutil.Process()
    names = [(TOTALS, name) for name in consumers] + [(module, "") for module in also]
    return RunningFleet(Service(*each, ourselves) for each in names)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(healing, "PATIENCE", 0.1)


def healed(world: World, fleet: RunningFleet, upto: int) -> list[str]:
    """What is said while it waits for the cell's so manieth ride. Raises NotHealed."""
    said: list[str] = []

    def say(line: str, _kind: Kind = Kind.NEWS) -> None:
        said.append(line)

    of(world, fleet, say).wait(world.start + upto)
    return said


def of(world: World, fleet: RunningFleet, say: Say = lambda *_: None) -> Healing:
    return Healing(world.connection, fleet, say)


def test_totals_are_compared_with_the_rides_wherever_each_consumer_stands(
    world: World, impatient: None
) -> None:
    fleet = a_fleet("consumer0", "consumer1")
    assert of(world, fleet).totals() == []
    streamer, first = world.streamer(), world.consumer()
    world.take(1, "2.001", 3)
    drain(streamer)
    catch_up(first)
    with pytest.raises(NotHealed):  # consumer1 has no total yet
        healed(world, fleet, 3)
    world.take("0.5")
    drain(streamer)
    catch_up(world.consumer("consumer1"))
    found = of(world, fleet).totals()
    assert [(each.ride, each.exact) for each in found] == [
        (world.start + 3, Decimal("6.001")),
        (world.start + 4, Decimal("6.501")),
    ]
    assert healed(world, fleet, 3)[-1].startswith("Healed: ")
    with pytest.raises(NotHealed):
        healed(world, fleet, 4)
    catch_up(first)
    assert healed(world, fleet, 4)[-1].startswith("Healed: ")
    world.connection.execute(
        "UPDATE checkpoints SET position = cell_start() + 2 WHERE name = 'consumer0'"
    )
    at = number(world.start + 2)
    [first_total, second] = of(world, fleet).totals()
    assert [first_total.is_exact, second.is_exact] == [False, True]
    assert f"consumer0 at position {at}: total 6.501 m, which is +3.500 m off" in str(first_total)
    with pytest.raises(NotHealed, match=f"not all totals are exact up to ride {at} after"):
        healed(world, fleet, 2)


def test_minutes_and_receipts_are_waited_for_where_somebody_makes_them(
    world: World, impatient: None
) -> None:
    world.take(1, 2)
    drain(world.streamer())
    catch_up(world.consumer())
    second = number(world.start + 2)
    alone = healed(world, a_fleet("consumer0"), 2)
    assert alone[-1].startswith(f"Healed: all is well up to ride {second}")
    with pytest.raises(NotHealed, match=f"not all minutes are complete up to ride {second} after"):
        healed(world, a_fleet("consumer0", also=[ROLLUP]), 2)
    world.connection.execute("UPDATE rollup_state SET complete_to = cell_start() + 2")
    assert "minutes" in " ".join(healed(world, a_fleet("consumer0", also=[ROLLUP]), 2))


def test_a_receipt_has_an_outcome_or_is_waited_for_beside_the_simulator(
    world: World, impatient: None
) -> None:
    world.take(1, 2, 3)
    drain(world.streamer())
    catch_up(world.consumer())
    fleet = a_fleet("consumer0", also=[RECEIPTS, SIMULATOR])
    for ride, outcome in ((1, "delivered"), (2, "dead"), (3, None)):
        with pytest.raises(NotHealed, match="not all receipts are delivered or dead letters"):
            healed(world, fleet, 3)
        world.connection.execute(OUTCOME, {"ride": ride, "outcome": outcome})
    assert healed(world, fleet, 2)[-1].startswith("Healed: ")
    with pytest.raises(NotHealed, match="not all receipts"):
        healed(world, fleet, 3)
    elsewhere = healed(world, a_fleet("consumer0", also=[RECEIPTS]), 3)
    assert elsewhere[-1].startswith("Healed: ")
    assert "receipts" not in " ".join(elsewhere)


def targeting(world: World, said: list[str]) -> Target:
    """The world as a fleet of one consumer, which would be frozen for 0.3 seconds."""

    def say(line: str, _kind: Kind = Kind.NEWS) -> None:
        said.append(line)

    fleet = a_fleet("consumer0")
    return Target(fleet, of(world, fleet, say), world.connection, world.log(), seconds=0.3, say=say)


def test_nothing_is_broken_where_a_consumer_missed_too_little(world: World) -> None:
    """The first batch may lie in its socket already, whatever becomes of the log then."""
    target = targeting(world, [])

    def send_a_batch() -> None:
        take(elsewhere, 1)
        drain(streamer)

    elsewhere, streamer = world.connect(), world.streamer()
    with ThreadPoolExecutor(1) as thread:
        thread.submit(send_a_batch)
        with pytest.raises(Unavailable, match="nothing was broken, because consumer0 missed too"):
            target.rides_while_frozen()


def test_without_a_ride_it_is_said_that_nothing_had_to_heal(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("demo.breaking.target.NEXT_RIDE", 0.1)
    said: list[str] = []
    targeting(world, said).heal_with_the_next_ride()
    assert said[0].startswith("No ride was taken since, so nothing had to heal yet.")
    assert not [line for line in said if "Healed" in line]
