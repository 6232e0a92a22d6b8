"""Dead letters: a person lists them, looks at them, and has them sent again or drops them."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from consumers.receipts import dead
from consumers.receipts.round import Step
from rocket_rides.faults import InjectedCrash, crash_at
from tests.support.api import Api, is_problem
from tests.support.receipts import SOON, Staff, sent
from tests.support.receiver import ACCEPT, refuse
from tests.support.world import eventually

Say = Callable[..., tuple[int, str]]


@pytest.fixture
def say(staff: Staff, capsys: pytest.CaptureFixture[str]) -> Say:
    """The command, in this process: its exit status, and what it prints."""

    def say(*words: str) -> tuple[int, str]:
        status = dead.run(staff.world.connection, dead.parse(words))
        return status, capsys.readouterr().out

    return say


@pytest.fixture
def letters(staff: Staff) -> list[int]:
    """Three of four receipts are dead."""
    rides = sent(staff.world, 4)
    staff.receiver.behaviour = lambda r: ACCEPT if r.ride_id == rides[3] else refuse(422)
    staff.worker("one").until(lambda: staff.outcomes("dead") == 3 and staff.outcomes() == 1)
    staff.receiver.behaviour = ACCEPT
    return rides


def test_a_person_sees_what_is_dead_and_why(staff: Staff, letters: list[int], say: Say) -> None:
    status, lines = say("list")
    assert status == 0
    assert len(lines.splitlines()) == 3
    assert "ride 1, 1.000 m, dead since" in lines
    assert "after 1 attempt: " in lines
    assert "422" in lines
    status, text = say("show", "1", "--json")
    letter = json.loads(text)
    assert (letter["outcome"], letter["attempts"], letter["distance"]) == ("dead", 1, 1.0)
    assert letter["webhook_id"] == staff.receiver.of(1)[0].webhook_id
    assert "webhook_id      msg_" in say("show", "4")[1]
    assert [letter["ride_id"] for letter in json.loads(say("list", "--json")[1])] == [1, 2, 3]


def test_a_replay_is_delivered_and_keeps_what_was_before(
    staff: Staff, letters: list[int], say: Say
) -> None:
    """Wherever `complete_to` is, and with as many attempts as at first."""
    worker = staff.worker("other", SOON._replace(attempts=1))
    worker.until(lambda: staff.complete_to == 4)
    assert say("replay", "1", "--dry-run") == (0, "ride 1: would be sent again\n")
    assert say("replay", "1") == (0, "ride 1: to be sent again\n")
    assert "(to be sent again)" in say("list")[1]
    status, lines = say("replay", "1", "4", "99")
    assert status == 1
    assert lines.splitlines() == [
        "ride 1: not done: it is being sent again already",
        "ride 4: not done: it was delivered",
        "ride 99: not done: it is not in the queue yet, or there is no such ride",
    ]
    worker.until(lambda: staff.outcomes() == 2)
    assert staff.receipt(1) == ("delivered", 2, None)
    assert len({request.webhook_id for request in staff.receiver.of(1)}) == 1
    staff.receiver.behaviour = refuse(500)
    assert json.loads(say("replay", "--all", "--json")[1])["done"] == [2, 3]
    worker.until(lambda: "(to be sent again)" not in say("list")[1])
    assert staff.receipt(2)[:2] == ("dead", 2)
    assert staff.receiver.rides == {1: 2, 2: 2, 3: 2, 4: 1}


def test_a_replay_that_failed_waits_until_it_is_due(
    staff: Staff, letters: list[int], say: Say
) -> None:
    say("replay", "1")
    staff.world.connection.execute("UPDATE receipts SET due_at = now() + interval '1 minute'")
    other = staff.worker("other")
    assert other.run(other.queue.take(10)) == []
    staff.world.connection.execute("UPDATE receipts SET due_at = now()")
    other.queue.look_at_all()
    assert [attempt.receipt.ride_id for attempt in other.run(other.queue.take(10))] == [1]


def test_a_dropped_one_is_never_sent_again(staff: Staff, letters: list[int], say: Say) -> None:
    assert say("drop", "1", "2", "--dry-run")[1].splitlines()[0] == "ride 1: would be dropped"
    assert say("drop", "1", "2") == (0, "ride 1: dropped\nride 2: dropped\n")
    assert "ride 3" in say("list")[1]
    assert "ride 1" not in say("list")[1]
    assert say("replay", "1") == (1, "ride 1: not done: it was dropped\n")
    assert json.loads(say("replay", "--all", "--json")[1])["done"] == [3]
    assert say("drop", "3") == (1, "ride 3: not done: it is being sent again already\n")
    worker = staff.worker("other", SOON)
    worker.until(lambda: staff.outcomes() == 2 and staff.complete_to == 4)
    assert say("list") == (0, "no dead letters\n")
    assert staff.receiver.rides[1] == 1


def test_of_many_who_replay_at_once_one_does(staff: Staff, letters: list[int]) -> None:
    def replay(_: int) -> list[int]:
        return dead.change(staff.world.connect(), "replay", [1, 2, 3])

    with ThreadPoolExecutor(8) as people:
        done = list(people.map(replay, range(8)))
    assert sorted(ride for rides in done for ride in rides) == [1, 2, 3]
    staff.worker("other").until(lambda: staff.outcomes() == 4)
    assert staff.receiver.rides == {1: 2, 2: 2, 3: 2, 4: 1}


def test_a_replay_survives_a_crash(staff: Staff, letters: list[int], impatient: None) -> None:
    assert dead.change(staff.world.connection, "replay", [1]) == [1]
    worker = staff.worker("other", SOON)
    with pytest.raises(InjectedCrash), crash_at(Step.BEFORE_SENDING):
        worker.until(lambda: False)
    worker.die()
    assert staff.receipt(1)[:2] == ("dead", 2)
    staff.worker("last", SOON).until(lambda: staff.outcomes() == 2)
    assert staff.receipt(1) == ("delivered", 3, None)


def test_the_command_is_one(staff: Staff, letters: list[int]) -> None:
    def run(*words: str) -> tuple[int, str]:
        service = staff.world.service("consumers.receipts.dead", *words)
        return service.process.wait(30), service.output.read_text()

    status, text = run("list")
    assert (status, len(text.splitlines())) == (0, 3)
    status, text = run("show", "99")
    assert (status, text) == (1, "no receipt of ride 99 is in the queue\n")


def test_the_api_shows_what_came_of_a_receipt(staff: Staff, letters: list[int], api: Api) -> None:
    """Also of one that nobody has tried to deliver yet."""

    def shown(ride_id: int) -> dict[str, object]:
        receipt: dict[str, object] = api.client.get(f"/rides/{ride_id}/receipt").json()["receipt"]
        return receipt

    delivered, refused = shown(4), shown(1)
    assert (delivered["outcome"], delivered["attempts"], delivered["reason"]) == (
        "delivered",
        1,
        None,
    )
    assert delivered["webhook_id"] == staff.receiver.of(4)[0].webhook_id
    assert refused["outcome"] == "dead"
    assert "422" in str(refused["reason"])
    [waiting] = staff.world.take(5)
    assert shown(waiting) | {"webhook_id": ""} == {
        "ride_id": waiting,
        "state": "queued",
        "outcome": None,
        "attempts": 0,
        "reason": None,
        "webhook_id": "",
        "first_attempt_at": None,
        "decided_at": None,
        "replay": False,
        "dropped": False,
    }
    dead.change(staff.world.connection, "replay", [1])
    dead.change(staff.world.connection, "drop", [2])
    assert (shown(1)["replay"], shown(2)["dropped"]) == (True, True)
    is_problem(api.client.get("/rides/6/receipt"), 404)
    assert eventually(lambda: shown(1)["outcome"]) == "dead"
