"""Slots move to another cell while rides come in, and each key takes one ride."""

import random
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from threading import Event

import pytest

from api.booking import FENCE
from cells.router import slots
from cells.router.__main__ import some_slots
from cells.router.keys import Keys
from cells.router.move import MoveStep, move
from cells.router.slots import SLOTS, read, write
from rocket_rides.cells import CELL_SIZE
from tests.support import plain_http
from tests.support.api import MAYBE_TAKEN, is_problem
from tests.support.cells import Cells, key_of
from tests.support.world import eventually
from unified_log.errors import Refused
from unified_log.faults import InjectedCrash, crash_at

ALL = "00-ff"


def test_each_key_takes_one_ride_while_slots_move_back_and_forth(cells: Cells) -> None:
    """Clients repeat their requests at random, and until they are answered."""
    over, dice, before_it = Event(), random.Random(7), cells.rides()

    def client(number: int) -> Counter[tuple[str, int]]:
        answers: Counter[tuple[str, int]] = Counter()
        mine = random.Random(number)
        with plain_http.client(cells.port) as api:
            asked: list[str] = []
            while not over.wait(0.005):
                key = mine.choice(asked[-20:]) if asked and mine.random() < 0.5 else None
                if key is None:
                    asked.append(key := f"{number}-{len(asked)}")
                headers = {"Idempotency-Key": key}
                answer = api.post("/rides", data={"distance": "5"}, headers=headers)
                if answer.status_code == 201:
                    answers[key, answer.json()["ride"]["id"]] += 1
                else:
                    assert answer.status_code == 503, answer.text
        return answers

    with ThreadPoolExecutor(4) as clients:
        playing = [clients.submit(client, number) for number in range(4)]
        try:
            for target in (1, 0, 1, 0, 1):
                chosen = set(dice.sample(SLOTS, 128))
                move(chosen, target, cells.map, cells.router, cells.databases)
        finally:
            over.set()
        answers = sum((each.result() for each in playing), Counter())
    of: dict[str, set[int]] = {}
    for key, ride in answers:
        of.setdefault(key, set()).add(ride)
    assert len(of) > 20
    assert {key: found for key, found in of.items() if len(found) > 1} == {}
    taken = [after - before for before, after in zip(before_it, cells.rides(), strict=True)]
    assert sum(taken) == sum(1 for key in of if cells.rides_of(key))
    assert all(taken)


@pytest.mark.parametrize("step", MoveStep)
def test_a_move_that_crashes_opens_no_slot_twice_and_goes_on_or_back(
    cells: Cells, step: MoveStep
) -> None:
    """Between cells that have both had the slots before."""
    cells.give(ALL, 1)
    for target in (0, 1):
        cells.give(ALL, 0)
        key = key_of(range(256))
        before = cells.post(key).json()
        taken = cells.rides()
        with crash_at(step), pytest.raises(InjectedCrash):
            cells.give(ALL, 1)
        for restart in (False, True):
            if restart:  # it reads the map on disk
                cells.stop()
                cells.start()
            meanwhile = cells.post(key)
            assert meanwhile.status_code == 503 or meanwhile.json() == before
        late = f"during-{target}"
        assert cells.takers(late) == ([1] if step is MoveStep.ACCEPTED else [])
        cells.give(ALL, target)
        assert cells.post(key).json() == before
        assert cells.takers(f"after-{target}") == [target]
        assert set(read(cells.map).values()) == {target}
        assert sum(cells.rides()) - sum(taken) == 1 + (step is MoveStep.ACCEPTED)


def test_a_cell_that_was_restored_gets_its_keys_and_its_fence_again(cells: Cells) -> None:
    key = key_of(range(128, 256))
    first = cells.post(key).json()
    cells.give(ALL, 1)
    cells.give("00-7f", 0)
    cells.worlds[1].connection.execute(f"ALTER TABLE idempotency_keys DROP CONSTRAINT {FENCE}")
    cells.worlds[1].connection.execute("DELETE FROM idempotency_keys")
    with cells.api_away(1):
        assert cells.move("restored", 1).stdout == "cell 1 can start; 1 key copied\n"
    assert cells.post(key).json() == first
    late = cells.apis[1].post(**{"Idempotency-Key": key_of(range(128))})
    assert is_problem(late, 503, MAYBE_TAKEN)


@pytest.mark.parametrize(
    ("slots", "restored"),
    [("80-ff", 1), ("", 1), ("", 0)],  # the last one from a backup of before
)
def test_after_a_restore_no_key_is_answered_with_a_ride_that_is_lost(
    cells: Cells, slots: str, restored: int
) -> None:
    """Not even with another one, which has got its id since. Whatever `slots` cell 1 has."""
    key = key_of(range(128, 256))
    cells.give("80-ff", 1)
    lost = cells.post(key).json()["ride"]["id"]
    cells.give("80-ff", 0)
    if slots:
        cells.give(slots, 1)
    database = cells.worlds[1].connection
    for table in ("idempotency_keys", "staged_log_records", "rides"):
        database.execute(f"DELETE FROM {table}")
    database.execute("SELECT setval('log_position', %s, false)", [lost])
    with cells.api_away(1):
        assert move(None, restored, cells.map, cells.router, cells.databases) == 0
    assert cells.apis[1].post("7").json()["ride"]["id"] == lost
    again = cells.post(key)
    assert "Idempotent-Replayed" not in again.headers
    assert again.json()["ride"]["id"] != lost


def test_a_second_router_that_knows_of_no_move_takes_no_ride_until_it_is_restarted(
    cells: Cells,
) -> None:
    """They share the map on disk; in its memory, the second still has what it read there."""
    upper = key_of(range(128, 256))
    ride = cells.post(upper).json()
    cells.give("80-ff", 1)
    cells.router.set(dict.fromkeys(SLOTS, 0))
    assert cells.post(upper).status_code == 503
    cells.stop()
    cells.start()
    again = cells.post(upper)
    assert (again.headers["Idempotent-Replayed"], again.json()) == ("true", ride)


def test_no_cell_takes_keys_of_slots_for_which_no_move_was_run(cells: Cells) -> None:
    """Also where the map on disk is an old one, or was lost: it says so, and they get a 503."""
    upper = key_of(range(128, 256))
    ride = cells.post(upper).json()
    cells.give("80-ff", 1)
    write(cells.map, dict.fromkeys(SLOTS, 0))
    moved = cells.move("00-0f,30", 1)
    assert moved.stdout == "cell 1 has these 17 slots; 0 keys copied\n"
    assert moved.stderr == (
        "the map gives cell 0 slots 80-ff, whose keys its database does not take: give it these"
        " slots, too\n"
    )
    assert cells.takers(upper) == []
    assert cells.move("80-ff", 1).stderr == ""
    assert cells.takers(upper) == [1]
    assert cells.post(upper).json() == ride


def test_slots_of_several_cells_can_each_be_given_back(cells: Cells) -> None:
    cells.give("80-ff", 1)
    lower, upper = key_of(range(128)), key_of(range(128, 256))
    rides = [cells.post(key).json() for key in (lower, upper)]
    with crash_at(MoveStep.REFUSED), pytest.raises(InjectedCrash):
        cells.give(ALL, 1)
    assert cells.post(lower).status_code == cells.post(upper).status_code == 503
    cells.give("80-ff", 1)
    cells.give("00-7f", 0)
    assert [cells.post(key).json() for key in (lower, upper)] == rides


@pytest.mark.proves("slots-move")
def test_what_the_router_had_sent_to_the_old_cell_takes_no_ride_there_later(cells: Cells) -> None:
    """However late it gets there; whether an earlier request took one, that cell can't know."""
    cells.give(ALL, 1)
    taken = cells.rides()
    late = cells.apis[0].post(**{"Idempotency-Key": "late"})
    assert is_problem(late, 503, MAYBE_TAKEN)
    assert late.headers["Retry-After"] == "1"
    assert late.json()["detail"].startswith("this key was moved to another cell")
    assert cells.rides() == taken
    assert cells.post("late").json()["ride"]["id"] > CELL_SIZE


def test_whoever_holds_a_lock_is_waited_for_and_it_is_said_once(
    cells: Cells, capfd: pytest.CaptureFixture[str]
) -> None:
    """While they do, others take rides in between."""
    key = key_of(range(256))
    slot = sha256(key.encode()).hexdigest()[:2]
    writing = cells.worlds[0].connect()
    writing.autocommit = False
    writing.execute(
        "INSERT INTO idempotency_keys (key, distance, ride_id) VALUES (%s, 5, 1)", [key]
    )
    with ThreadPoolExecutor(1) as beside, writing:  # which ends first
        moved = beside.submit(move, {slot}, 1, cells.map, cells.router, cells.databases)
        eventually(lambda: cells.worlds[0].waiting, "the wait for a lock")
        eventually(lambda: not cells.worlds[0].waiting, "a pause")
        eventually(lambda: cells.worlds[0].waiting, "another try")
        assert cells.post(f"not-{key}").status_code == 201
        writing.commit()
        assert moved.result() == 1
    assert cells.rides_of(key) == 1
    assert capfd.readouterr().err == "cell 0: waiting for a lock on idempotency_keys\n"


def test_of_two_moves_at_once_the_second_is_refused_on_whatever_host(
    cells: Cells, tmp_path: Path
) -> None:
    """A folder that hosts share may know no locks, so the databases' are what counts."""
    elsewhere = Path(shutil.copy(cells.map, tmp_path))
    with (
        closing(Keys(0, cells.databases[0])),
        pytest.raises(Refused, match="another move is under way"),
    ):
        move({"00"}, 1, elsewhere, cells.router, cells.databases)
    assert cells.takers("k") == [0, 1]  # neither refuses anything


def test_a_move_that_knows_no_cell_that_was_given_slots_meanwhile_is_refused(
    cells: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its first look at the map and its locks, another one ended."""
    before = read(cells.map)
    cells.give(ALL, 1)
    maps = iter([before])
    monkeypatch.setattr(slots, "read", lambda path: next(maps, None) or read(path))
    monkeypatch.setattr(cells.router, "cells", lambda: {0})
    with pytest.raises(Refused, match="cell 1 was given slots meanwhile"):
        move(some_slots(ALL), 0, cells.map, cells.router, {0: cells.databases[0]})
    assert cells.takers("k") == [1]


def test_a_key_with_another_ride_in_the_new_cell_switches_nothing(cells: Cells) -> None:
    first = cells.post("k").json()["ride"]["id"]
    other = cells.apis[1].post().json()["ride"]["id"]
    cells.worlds[1].connection.execute(
        "INSERT INTO idempotency_keys (key, distance, ride_id) VALUES ('k', 5, %s)", [other]
    )
    refused = cells.move(ALL, 1)
    assert (refused.returncode, refused.stderr) == (
        1,
        f"not moved yet: a key has ride {first} in cell 0, and ride {other} in cell 1: delete"
        " the latter from its idempotency_keys; until it is run again, or run with cell 0 to give"
        " the slots back, their keys get a 503\n",
    )
    assert set(read(cells.map).values()) == {0}
    assert cells.post("k").status_code == 503
    assert cells.move(ALL, 0).stdout == "cell 0 has these 256 slots; 0 keys copied\n"
    assert cells.post("k").json()["ride"]["id"] == first


def test_an_api_or_a_router_that_is_away_is_noticed_before_anything_is_done(
    cells: Cells,
) -> None:
    cells.lose_api(1)
    with pytest.raises(Refused, match="HAProxy finds the API of cell 1 not ready"):
        cells.give("00", 1)
    cells.stop()
    with pytest.raises(Refused, match="HAProxy can't be reached"):
        cells.give("00", 1)
    assert set(read(cells.map).values()) == {0}
    assert cells.apis[0].post(**{"Idempotency-Key": "k"}).status_code == 201


def test_the_router_must_have_the_cell_that_slots_move_to(cells: Cells) -> None:
    cells.router.require_up(1)
    with pytest.raises(Refused, match="HAProxy has no backend cell_2: add it"):
        cells.router.require_up(2)
