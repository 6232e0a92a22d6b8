"""Dead letters: a person lists them, and has them sent again or drops them."""

from collections.abc import Callable

import pytest

from consumers.receipts import dead
from tests.support.api import Api, is_problem
from tests.support.receipts import SOON, Staff, sent
from tests.support.receiver import ACCEPT, refuse

Say = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def say(staff: Staff, capsys: pytest.CaptureFixture[str]) -> Say:
    """The command, in this process: its exit status, and the lines that it prints."""

    def say(*words: str | int) -> tuple[int, list[str]]:
        status = dead.run(staff.world.connection, dead.parse([*map(str, words)]))
        return status, capsys.readouterr().out.splitlines()

    return say


@pytest.fixture
def letters(staff: Staff) -> list[int]:
    """Three of four receipts are dead."""
    rides = sent(staff.world, 4)
    staff.receiver.behaviour = lambda r: ACCEPT if r.ride_id == rides[3] else refuse(410)
    staff.worker("one").until(lambda: staff.outcomes("dead") == 3 and staff.outcomes() == 1)
    staff.receiver.behaviour = ACCEPT
    return rides


def test_a_replay_is_delivered_and_keeps_what_was_before(
    staff: Staff, say: Say, letters: list[int]
) -> None:
    """Wherever `complete_to` is, and with as many attempts as at first."""
    one, two, three, four = letters
    unknown = four + 1
    status, [first, *others] = say("list")
    assert (status, len(others)) == (0, 2)
    assert first.startswith(f"ride {one}, 1.000 m, dead since 20")
    assert first.endswith("Z after 1 attempt: status 410")
    worker = staff.worker("other", **SOON, receipt_attempts=1)
    worker.until(lambda: staff.complete_to == 4)
    assert say("replay", one) == (0, [f"ride {one}: to be sent again"])
    assert "after 0 attempts (to be sent again): status 410" in say("list")[1][0]
    assert say("replay", one, four, unknown) == (
        1,
        [
            f"ride {one}: not done: it is being sent again already",
            f"ride {four}: not done: it was delivered",
            f"ride {unknown}: not done: it is not in the queue yet, or there is no such ride",
        ],
    )
    worker.until(lambda: staff.outcomes() == 2)
    assert staff.receipt(one) == ("delivered", 2, None)
    assert len({request.webhook_id for request in staff.receiver.of(one)}) == 1
    staff.receiver.behaviour = refuse(500)
    assert len(say("replay", "--all")[1]) == 2
    worker.until(lambda: "(to be sent again)" not in str(say("list")))
    assert staff.receipt(two)[:2] == ("dead", 2)
    assert staff.receiver.rides == {one: 2, two: 2, three: 2, four: 1}


def test_a_dropped_one_is_never_sent_again(staff: Staff, say: Say, letters: list[int]) -> None:
    one, two, three, _ = letters
    assert say("drop", one, two) == (0, [f"ride {one}: dropped", f"ride {two}: dropped"])
    assert [line.partition(",")[0] for line in say("list")[1]] == [f"ride {three}"]
    assert say("replay", one) == (1, [f"ride {one}: not done: it was dropped"])
    assert say("replay", "--all") == (0, [f"ride {three}: to be sent again"])
    assert say("drop", three) == (1, [f"ride {three}: not done: it is being sent again already"])
    worker = staff.worker("other", **SOON)
    worker.until(lambda: staff.outcomes() == 2 and staff.complete_to == 4)
    assert say("list") == (0, ["no dead letters"])
    assert staff.receiver.rides[one] == 1


def test_the_api_shows_what_came_of_a_receipt(staff: Staff, api: Api, letters: list[int]) -> None:
    """Also of one that nobody has tried to deliver yet."""
    one, two, _, four = letters

    def shown(ride_id: int) -> dict[str, object]:
        receipt: dict[str, object] = api.client.get(f"/rides/{ride_id}/receipt").json()["receipt"]
        return receipt

    delivered, refused = shown(four), shown(one)
    assert [delivered[name] for name in ("outcome", "attempts", "reason")] == ["delivered", 1, None]
    assert delivered["webhook_id"] == staff.receiver.of(four)[0].webhook_id
    assert (refused["outcome"], refused["reason"]) == ("dead", "status 410")
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
    dead.change(staff.world.connection, "replay", [one])
    dead.change(staff.world.connection, "drop", [two])
    assert (shown(one)["replay"], shown(two)["dropped"]) == (True, True)
    assert shown(one)["outcome"] == "dead"
    is_problem(api.client.get(f"/rides/{waiting + 1}/receipt"), 404)
