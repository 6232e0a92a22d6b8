"""The router: whose a request is, and how slots move to another cell while rides come in."""

import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from threading import Event

import httpx
import pytest

from api.router import moving
from api.router.__main__ import Step, move, some_slots
from api.router.slots import SLOTS, read
from rocket_rides.database import CELL_SIZE
from rocket_rides.errors import Refused, Unavailable
from rocket_rides.faults import InjectedCrash, crash_at
from tests.support.cells import Cells, two_cells
from tests.support.folders import short_folder
from tests.support.world import World, eventually

ALL = "00-ff"


@pytest.fixture(scope="module")
def both(module_world: World) -> Iterator[Cells]:
    with short_folder() as folder, two_cells(module_world, folder) as found:
        yield found


@pytest.fixture
def cells(both: Cells) -> Cells:
    both.put_back()
    return both


@pytest.fixture
def own_cells(world: World) -> Iterator[Cells]:
    with short_folder() as folder, two_cells(world, folder) as found:
        yield found


def key_of(slots: range) -> str:
    """A key of one of these slots."""
    return next(
        key
        for key in (f"key{number}" for number in range(10**6))
        if int(sha256(key.encode()).hexdigest()[:2], 16) in slots
    )


def test_a_key_goes_to_the_cell_of_its_slot_and_a_ride_to_the_cell_in_its_id(cells: Cells) -> None:
    assert cells.move("80-ff", 1).stdout == "cell 1 has 128 slots; 0 keys copied\n"
    lower, upper = key_of(range(128)), key_of(range(128, 256))
    first, other = (cells.post(key).json()["ride"]["id"] for key in (lower, upper))
    assert (first // CELL_SIZE, other // CELL_SIZE) == (0, 1)
    assert cells.post(upper).headers["Idempotent-Replayed"] == "true"
    for ride in (first, other):
        assert cells.client.get(f"/rides/{ride}").json()["ride"]["id"] == ride
        assert cells.client.post(f"/rides/{ride}/rating", data={"stars": 5}).status_code == 201
    assert cells.client.get(f"/rides/000{other}").status_code == 200


@pytest.mark.parametrize("ride", [2 * CELL_SIZE, 90 * CELL_SIZE, 10**17, 2**63, 10**40])
def test_a_ride_of_no_cell_is_not_found(cells: Cells, ride: int) -> None:
    answer = cells.client.get(f"/rides/{ride}")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert "cell" in answer.json()["detail"]  # the router's own, not the API's


def test_a_cell_that_is_down_takes_no_other_along(own_cells: Cells) -> None:
    cells = own_cells
    cells.move("80-ff", 1)
    lower, upper = key_of(range(128)), key_of(range(128, 256))
    cells.apis[1].service.kill()
    eventually(lambda: cells.post(upper).status_code == 503, "the router's notice")
    for answer in (cells.post(upper), cells.client.get(f"/rides/{CELL_SIZE + 1}")):
        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "1"
        assert answer.json()["status"] == 503
    assert cells.post(lower).status_code == 201
    assert {cells.post().json()["ride"]["id"] // CELL_SIZE for _ in range(10)} == {0}


@pytest.mark.parametrize(
    "key", ["k", "ä", "🚀 ride", "a b", "x" * 255, "!~", "00", "A", "'; --", "%25"]
)
def test_router_and_database_agree_on_a_keys_slot(cells: Cells, key: str) -> None:
    """Also on keys that the API refuses."""
    [slot] = cells.worlds[0].connection.execute(
        f"SELECT {moving.SLOT} FROM (SELECT %s::text AS key) given", [key]
    ).fetchone() or [""]
    assert slot == sha256(key.encode()).hexdigest()[:2]
    cells.router.set(dict.fromkeys(SLOTS, "0") | {slot: "0>1"})
    with httpx.Client(base_url=cells.client.base_url, timeout=30) as client:
        answer = client.post(
            "/rides", data={"distance": "5"}, headers=[(b"Idempotency-Key", key.encode())]
        )
    assert "move to another cell" in answer.text


def test_each_key_takes_one_ride_while_slots_move_back_and_forth(cells: Cells) -> None:
    """Clients repeat their requests at random, and until they are answered."""
    over, dice, before_it = Event(), random.Random(7), cells.rides()

    def client(number: int) -> Counter[tuple[str, int]]:
        answers: Counter[tuple[str, int]] = Counter()
        mine = random.Random(number)
        with httpx.Client(base_url=cells.client.base_url, timeout=30) as api:
            asked: list[str] = []
            while not over.is_set():
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


@pytest.mark.parametrize("step", Step)
def test_a_move_that_crashes_opens_no_slot_twice_and_goes_on(cells: Cells, step: Step) -> None:
    key = key_of(range(256))
    taken_before = cells.post(key)
    assert taken_before.status_code == 201
    before = taken_before.json()
    chosen, taken = some_slots(ALL), cells.rides()
    with crash_at(step), pytest.raises(InjectedCrash):
        move(chosen, 1, cells.map, cells.router, cells.databases)
    meanwhile = cells.post(key)
    assert meanwhile.status_code == 503 or meanwhile.json() == before
    cells.stop()
    cells.start()  # it reads the map on disk
    meanwhile = cells.post(key)
    assert meanwhile.status_code == 503 or meanwhile.json() == before
    if step is not Step.SWITCHED_ON_DISK:
        with pytest.raises(Refused, match="on its way to cell 1: finish that"):
            move(chosen, 0, cells.map, cells.router, cells.databases)
    move(chosen, 1, cells.map, cells.router, cells.databases)
    assert cells.post(key).json() == before
    assert set(read(cells.map).values()) == {"1"}
    assert cells.rides() == taken


@pytest.mark.proves("slots-move")
def test_what_was_under_way_when_its_slot_was_paused_takes_no_ride_later(cells: Cells) -> None:
    """However late it reaches the old cell's database."""
    cells.move(ALL, 1)
    taken = cells.rides()
    late = cells.apis[0].post(**{"Idempotency-Key": "late"})
    assert late.status_code == 503
    assert cells.rides() == taken
    assert cells.post("late").json()["ride"]["id"] > CELL_SIZE


def test_a_transaction_that_writes_a_key_is_waited_for(cells: Cells) -> None:
    key = key_of(range(256))
    slot = sha256(key.encode()).hexdigest()[:2]
    writing = cells.worlds[0].connect()
    writing.autocommit = False
    writing.execute(
        "INSERT INTO idempotency_keys (key, distance, ride_id) VALUES (%s, 5, 1)", [key]
    )
    with ThreadPoolExecutor(1) as beside:
        moved = beside.submit(move, {slot}, 1, cells.map, cells.router, cells.databases)
        eventually(lambda: cells.post(key).status_code == 503, "the pause")
        assert not moved.done()
        writing.commit()
        assert moved.result() == 1
    assert cells.rides_of(key) == 1


def lines(path: Path, change: str) -> None:
    text = path.read_text()
    path.write_text(
        {"short": text[6:], "twice": text + "00 0\n", "far": text[:-5] + "ff 90\n"}[change]
    )


@pytest.mark.parametrize("change", ["short", "twice", "far"])
def test_a_map_that_is_none_moves_nothing(cells: Cells, change: str) -> None:
    lines(cells.map, change)
    refused = cells.move("00", 1)
    assert refused.returncode == 1
    assert refused.stderr.startswith("not moved, or not yet: ")
    assert str(cells.map) in refused.stderr


@pytest.mark.parametrize(
    ("slots", "cell", "why"),
    [
        ("00", 2, "CELL_2_DATABASE_URL is not set: which database has cell 2?"),
        ("00", 90, "a cell has a number from 0 to 89, not 90"),
        ("fg", 1, "argument SLOTS: fg is no slot from 00 to ff, and no range of them"),
        ("80-7f", 1, "argument SLOTS: 80-7f is no slot from 00 to ff, and no range of them"),
    ],
)
def test_a_slot_or_a_cell_that_is_not_there_moves_nothing(
    cells: Cells, slots: str, cell: int, why: str
) -> None:
    refused = cells.move(slots, cell)
    assert why in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert set(read(cells.map).values()) == {"0"}


def test_a_cell_or_a_router_that_is_away_moves_nothing(cells: Cells) -> None:
    away = {**cells.databases, 1: "postgresql://127.0.0.1:1/rides"}
    with pytest.raises(Unavailable):
        move({"00"}, 1, cells.map, cells.router, away)
    cells.stop()
    with pytest.raises(Refused, match="HAProxy can't be reached"):
        move({"00"}, 1, cells.map, cells.router, cells.databases)
    cells.start()
    assert set(read(cells.map).values()) == {"0"}


def test_a_database_of_another_cell_is_refused(cells: Cells) -> None:
    swapped = {0: cells.databases[1], 1: cells.databases[0]}
    with pytest.raises(Refused, match="the database is cell"):
        move({"00"}, 1, cells.map, cells.router, swapped)


def test_a_key_whose_cell_the_router_does_not_have_takes_no_ride(cells: Cells) -> None:
    """In its own cell it may have taken one."""
    cells.router.set(dict.fromkeys(SLOTS, "2"))
    taken = cells.rides()
    answer = cells.post("k")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert cells.rides() == taken


def test_the_router_must_have_the_cell_that_slots_move_to(cells: Cells) -> None:
    cells.router.require_cell(1)
    with pytest.raises(Refused, match="HAProxy has no backend cell_2: add it"):
        cells.router.require_cell(2)


def test_a_key_under_a_name_that_only_the_api_would_take_is_refused(cells: Cells) -> None:
    answer = cells.client.post("/rides", data={"distance": "5"}, headers={"Idempotency_Key": "k"})
    assert answer.status_code == 400
    assert "with a hyphen" in answer.json()["detail"]


def test_a_target_whose_keys_are_locked_is_waited_for(cells: Cells) -> None:
    cells.move(ALL, 1)
    writing = cells.worlds[0].connect()
    writing.autocommit = False
    writing.execute("LOCK TABLE idempotency_keys IN ROW EXCLUSIVE MODE")
    with ThreadPoolExecutor(1) as beside:
        moved = beside.submit(move, {"00"}, 0, cells.map, cells.router, cells.databases)
        eventually(lambda: read(cells.map)["00"] == "1>0", "the pause")
        eventually(lambda: cells.worlds[0].waiting, "the wait for a lock")
        writing.rollback()
        assert moved.result() == 0
    assert read(cells.map)["00"] == "0"
