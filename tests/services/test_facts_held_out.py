"""Records that are held out, and readers that recount: in the facts, the metrics and the API."""

from dataclasses import replace
from decimal import Decimal

from tests.support.engine import all_shown
from tests.support.held_out import hold_out, lack, note
from tests.support.looks import look, reader, said, seen
from tests.support.metrics import series, value
from tests.support.world import World, catch_up
from watch.events import Events
from watch.facts import Agreement, HeldOut
from watch.problems import notices, problems
from watch.screen import screen

DROP = "UPDATE held_out_records SET dropped_at = now() WHERE position = %s"
RECOUNT = "UPDATE checkpoints SET recount = true WHERE name = %s"
GO_BACK = """
    UPDATE checkpoints SET furthest = position, position = position - 2 WHERE name = %s
"""
FIT = """
    UPDATE consumer_states SET (rides, total_distance) = (
        SELECT count(*), sum(distance) FROM rides WHERE id <= position
    ) FROM checkpoints
    WHERE checkpoints.name = consumer_states.name AND consumer_states.name = 'consumer0'
"""


def two_totals(world: World) -> list[int]:
    rides = world.send(1, 2, "3.5", 4)
    for name in ("consumer0", "consumer1"):
        catch_up(world.consumer(name))
    return rides


def test_what_waits_for_a_decision_and_what_was_dropped_is_told(world: World) -> None:
    one, two, three, _ = two_totals(world)
    hold_out(world, "consumer0", one, two, three)
    world.connection.execute(DROP, [two])
    facts = look(world)
    database = said(facts)
    found = reader(database, "consumer0")
    assert (found.held_out, found.dropped) == (2, 1)
    assert reader(database, "consumer1").held_out == 0
    assert {each.position for each in database.held_out} == {one, three}
    newest = database.held_out[0]
    assert replace(newest, since=facts.at) == HeldOut(
        "total", "consumer0", three, "ride.create", "too long", 1, facts.at
    )
    [notice] = [each for each in notices(facts) if "held out" in each]
    assert notice.startswith("2 records held out by the total consumer0: make held-out says why")
    assert "held out    the total consumer0: 2 held out, 1 dropped" in screen(facts)
    told = series(facts)
    for name, count in (("records_held_out", 2), ("records_dropped", 1), ("recounts", 0)):
        assert value(told, f"reader_{name}", kind="total", reader="consumer0") == count
    shown = {each["name"]: each for each in all_shown(world)}
    assert shown["consumer0"]["held_out"] == {"undecided": 2, "dropped": 1}
    for name in ("consumer1", "receipts"):
        assert shown[name]["held_out"] == {"undecided": 0, "dropped": 0}
    assert {each["recounts"] for each in shown.values()} == {False}


def test_totals_agree_but_for_what_is_held_out(world: World) -> None:
    """Wherever it lies, and whatever somebody has written down."""
    one, two, three, four = two_totals(world)
    hold_out(world, "consumer0", one, four)
    hold_out(world, "consumer1", four)
    assert seen(world).agreement == Agreement(
        four, dict.fromkeys(("consumer0", "consumer1"), Decimal("10.5"))
    )
    [five] = world.send(5)
    catch_up(world.consumer())
    agreement = seen(world).agreement
    assert agreement
    assert agreement.agree
    note(world, "consumer1", five)  # past its position
    note(world, "consumer1", two, type_="rating.create")  # it does not handle that
    note(world, "consumer1", four - 10, type_="ride.create")  # no such ride
    assert seen(world).agreement == agreement
    note(world, "consumer1", three)  # it has counted it
    disagrees = seen(world).agreement
    assert disagrees
    assert not disagrees.agree


def test_a_total_that_recounts_is_said_to_and_not_compared(world: World) -> None:
    rides = two_totals(world)
    lack(world, "consumer0", rides[0])
    assert [problem.kind for problem in problems(look(world))].count("disagrees") == 1
    for statement in (RECOUNT, GO_BACK):
        world.connection.execute("UPDATE checkpoints SET recount = false")
        world.connection.execute(statement, ["consumer0"])
        if statement == GO_BACK:
            world.connection.execute(FIT)
        facts = look(world)
        assert reader(said(facts), "consumer0").recounts
        assert not reader(said(facts), "consumer1").recounts
        if statement == RECOUNT:  # once it has begun, its state fits its position
            assert said(facts).agreement == Agreement(rides[-1], {"consumer1": Decimal("10.5")})
        assert "disagrees" not in {problem.kind for problem in problems(facts)}
        assert any("the total consumer0 recounts" in notice for notice in notices(facts))
        assert "recounts    the total consumer0" in screen(facts)
        shown = all_shown(world)[0]
        assert shown["recounts"] is True


def test_a_reader_that_is_never_asked_does_not_recount(world: World) -> None:
    """It has no state of its own, or is another program."""
    world.connection.execute(
        "INSERT INTO checkpoints (kind, name, position, furthest, recount)"
        " VALUES ('rollup', 'rollup', cell_start(), cell_start() + 1, NULL)"
    )
    assert not reader(seen(world), "rollup").recounts


def test_an_event_tells_of_each_and_of_what_is_counted_after_all(world: World) -> None:
    one, *_ = two_totals(world)
    events = Events()
    events.since_last(look(world))
    hold_out(world, "consumer0", one)
    [event] = [each for each in events.since_last(look(world)) if "holds out" in each.words]
    assert event.words == f"consumer0 holds out ride.create {one:,}: too long"
    assert event.mood == "fault"
    assert not [each for each in events.since_last(look(world)) if "holds out" in each.words]
    world.connection.execute("UPDATE held_out_records SET retry = true")
    consumer = world.consumer()
    while world.value("SELECT count(*) FROM held_out_records"):
        consumer.run_once()
    [event] = [each for each in events.since_last(look(world)) if "held out" in each.words]
    assert event.words == "consumer0 counted 1 record that it had held out"
    assert event.mood == "healed"
