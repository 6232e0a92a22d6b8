"""The router: whose a request is."""

import re
from hashlib import sha256

from cells.router import keys
from cells.router.slots import SLOTS
from rocket_rides.cells import CELL_SIZE
from tests.support import plain_http
from tests.support.api import FORM, ask, statuses
from tests.support.cells import Cells, key_of


def test_a_key_goes_to_the_cell_of_its_slot_and_a_ride_to_the_cell_in_its_id(cells: Cells) -> None:
    assert cells.move("80-ff", 1).stdout == "cell 1 has these 128 slots; 0 keys copied\n"
    lower, upper = key_of(range(128)), key_of(range(128, 256))
    first, other = (cells.post(key).json()["ride"]["id"] for key in (lower, upper))
    assert (first // CELL_SIZE, other // CELL_SIZE) == (0, 1)
    assert cells.post(upper).headers["Idempotent-Replayed"] == "true"
    for ride in (first, other):
        assert cells.client.get(f"/rides/{ride}").json()["ride"]["id"] == ride
        assert cells.client.post(f"/rides/{ride}/rating", data={"stars": 5}).status_code == 201
    for same in (f"000{other}", f"%31{str(other)[1:]}"):
        assert cells.client.get(f"/rides/{same}").status_code == 200


def test_a_ride_of_no_cell_is_not_found(cells: Cells) -> None:
    for ride in (2 * CELL_SIZE, 90 * CELL_SIZE, 10**17, 2**63, 10**40):
        answer = cells.client.get(f"/rides/{ride}")
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"
        assert "cell" in answer.json()["detail"]  # the router's own, not the API's


def test_a_ride_is_found_in_its_cell_however_the_api_lets_its_path_be_written(
    cells: Cells,
) -> None:
    ride = cells.apis[1].post().json()["ride"]["id"]
    with plain_http.client(cells.port) as client:
        for path in ("/rides", "//rides", "///rides", "/%2Frides", "/%72ides"):
            url = f"http://127.0.0.1:{cells.port}{path}/{ride}"
            assert {client.get(url).status_code for _ in range(4)} == {200}, path


def test_a_feed_goes_on_in_the_cell_of_its_position(cells: Cells) -> None:
    for cell, world in enumerate(cells.worlds):
        first = world.send(1)[0] - 1
        for _ in range(4):
            page = cells.client.get("/log", params={"after": first})
            [event] = page.json()
            assert event["source"].endswith(f"/cells/{cell}")
            assert cells.client.get(f"/log{page.links['next']['url']}").json() == []
    assert cells.client.get("/log?limit=1").json()[0]["source"].endswith("/cells/0")


def test_a_cell_that_is_down_takes_no_other_along(cells: Cells) -> None:
    cells.give("80-ff", 1)
    lower, upper = key_of(range(128)), key_of(range(128, 256))
    cells.lose_api(1)
    for answer in (cells.post(upper), cells.client.get(f"/rides/{CELL_SIZE + 1}")):
        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "1"
        assert answer.json()["status"] == 503
    assert cells.post(lower).status_code == 201
    assert {cells.post().json()["ride"]["id"] // CELL_SIZE for _ in range(10)} == {0}


def test_router_and_database_agree_on_a_keys_slot(cells: Cells) -> None:
    """Also on keys that the API refuses; where the router lacks its cell, none takes a ride.

    In its own cell, the key may have taken one.
    """
    [slot_of] = re.findall("WHERE (.*) = ANY", keys.OUT)
    taken = cells.rides()
    for key in ("k", "ä", "🚀 ride", "a b", "x" * 255, "!~", "00", "A", "'; --", "%25"):
        [slot] = cells.worlds[0].connection.execute(
            f"SELECT {slot_of} FROM (SELECT %s::text AS key) given", [key]
        ).fetchone() or [""]
        assert slot == sha256(key.encode()).hexdigest()[:2]
        cells.router.set(dict.fromkeys(SLOTS, 0) | {slot: 2})  # which the router does not have
        with plain_http.client(cells.port) as client:
            answer = client.post(
                "/rides", data={"distance": "5"}, headers=[(b"Idempotency-Key", key.encode())]
            )
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        assert "the cell of this key is not known here" in answer.text
    assert cells.rides() == taken


KEY, UNDERSCORED = b"Idempotency-Key: a\r\n", b"idempotency_Key: b\r\n"
TWO_WAYS = {
    "another name": UNDERSCORED,
    "another name before": UNDERSCORED + KEY,
    "another name after": KEY + UNDERSCORED,
    "two keys": KEY + KEY.replace(b"a\r", b"b\r"),
    "two hosts": b"Host: y\r\n",
    "Content_Length": b"Content_Length: 9\r\n",
}


def test_what_the_api_could_read_in_another_way_takes_no_ride(cells: Cells) -> None:
    """The router looks at Idempotency-Key alone, and WSGI does not tell these names apart."""
    taken = cells.rides()
    for kind, headers in TWO_WAYS.items():
        request = FORM + headers + b"Content-Length: 10\r\n\r\ndistance=5"
        assert statuses(ask(cells.port, request)) == [400], kind
    assert cells.rides() == taken
