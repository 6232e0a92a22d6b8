"""The API over real HTTP: what it takes, what it shows, and what it refuses."""

import re
from collections.abc import Iterator

import pytest

from api.parameters import KEY_LENGTH
from tests.support.api import CLOSE, Api, ask, is_problem
from tests.support.world import World

JSON = {"Content-Type": "application/json"}


def test_a_ride_is_taken_and_shown_with_its_exact_distance(api: Api, world: World) -> None:
    answer = api.post("539.837")
    assert answer.status_code == 201
    ride = world.start + 1
    assert answer.headers["location"] == f"/rides/{ride}"
    assert '"distance":539.837' in answer.text
    assert answer.json() == {
        "message": "Your ride of 539.837 m is booked",
        "ride": {"id": ride, "distance": 539.837},
    }
    shown = api.client.get(answer.headers["location"]).json()["ride"]
    assert (shown["id"], shown["distance"]) == (ride, 539.837)

    staged = world.connection.execute("SELECT id, data::text FROM staged_log_records").fetchall()
    assert staged == [(ride, f'{{"id": {ride}, "distance": 539.837}}')]

    # As binary floats, these two are the same, and more than half way to the next millimetre.
    for written, kept in (("0.0025", "0.002"), ("0.0025000000000000000001", "0.003")):
        as_form = api.post(written)
        as_json = api.client.post("/rides", content=f'{{"distance": {written}}}', headers=JSON)
        for answer in (as_form, as_json):
            assert f'"distance":{kept}}}' in answer.text


def test_an_answer_to_head_has_all_but_the_body(api_for_refusals: Api) -> None:
    asked = b" /openapi.json HTTP/1.1\r\n" + CLOSE + b"\r\n"
    got, head = (
        ask(api_for_refusals.port, method + asked).partition(b"\r\n\r\n")
        for method in (b"GET", b"HEAD")
    )
    heads = ({*headers.lower().split(b"\r\n")} for headers in (got[0], head[0]))
    different = set.symmetric_difference(*heads)
    assert all(line.startswith(b"date:") for line in different)
    assert got[2]
    assert not head[2]


def test_a_consumer_without_a_total_and_with_many_entries_ignored_is_shown(
    api_for_refusals: Api, module_world: World
) -> None:
    module_world.consumer("consumer0")
    module_world.connection.execute("DELETE FROM consumer_states")
    module_world.connection.execute("UPDATE checkpoints SET entries_ignored = 3000000000")
    [shown, _] = api_for_refusals.client.get("/consumers").json()["consumers"]
    assert (shown["name"], shown["total_distance"]) == ("consumer0", None)
    assert shown["entries_ignored"] == 3_000_000_000


JSON_REFUSED = [
    ("{}", 422),
    ('{"distance": null}', 422),
    ('{"distance": true}', 422),
    ('{"distance": "5"}', 422),
    ('{"distance": {"m": 5}}', 422),
    ('{"distance": 5, "distance": 6}', 422),
    ('{"distance": -1}', 422),
    ('{"distance": -5, "x": 1e9999999999999999999}', 422),
    ('[["distance", 5]]', 422),
    ("5", 422),
    ('{"distance": ' + "9" * 15_000 + "}", 422),
    ('{"distance": NaN}', 400),
    ('{"distance": 1_000}', 400),
    ('{"distance": 5', 400),
    ("", 400),
    ('{"distance": ' + "[" * 15_000, 400),
    (b'{"distance": 5, "who": "\xff"}', 400),
]


@pytest.mark.parametrize(("body", "status"), JSON_REFUSED, ids=lambda part: str(part)[:40])
def test_json_that_is_no_ride_is_refused(
    api_for_refusals: Api, body: str | bytes, status: int
) -> None:
    answer = api_for_refusals.client.post("/rides", content=body, headers=JSON)
    assert is_problem(answer, status)


FORMS_REFUSED = {
    "nothing": "",
    "another field": "length=5",
    "no number": "distance=five",
    "less than half a millimetre": "distance=0.0004",
    "a field of that name, nested": "distance=5&distance[]=6",
    "repeated": "distance=5&distance=5",
    "not UTF-8": "distance=%ff",
    "a NUL": "distance=5%00",
}


@pytest.mark.parametrize(
    "body", [b"distance=5\xff", b"distance=5&x=\xff", b'{"distance":5,"x":"\xff"}']
)
def test_a_body_that_is_not_utf_8_is_told_so(api_for_refusals: Api, body: bytes) -> None:
    kind = "application/json" if body[:1] == b"{" else "application/x-www-form-urlencoded"
    answer = api_for_refusals.client.post("/rides", content=body, headers={"Content-Type": kind})
    assert is_problem(answer, 400)
    assert answer.json()["detail"] == "send the body in UTF-8"


@pytest.mark.parametrize("kind", FORMS_REFUSED)
def test_forms_that_are_no_ride_are_refused(api_for_refusals: Api, kind: str) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = api_for_refusals.client.post("/rides", content=FORMS_REFUSED[kind], headers=form)
    assert is_problem(answer, 422)


def test_other_requests_are_refused_with_the_right_status(api_for_refusals: Api) -> None:
    client = api_for_refusals.client
    typed = {"Content-Type": "text/plain"}
    assert is_problem(client.post("/rides", content="distance=5", headers=typed), 415)
    assert is_problem(client.post("/rides", content=b"distance=5"), 415)
    assert is_problem(client.post("/rides"), 422)
    assert is_problem(client.post("/rides?distance=5"), 422)
    assert is_problem(client.post("/rides", data={"distance": "5" * 17_000}), 413)
    for path in ("/", "/rides/", "/rides/x", "/rides/-1", "/rides//1", "/rides/\u0661"):
        answer = client.get(path)
        assert is_problem(answer, 404), path
        for there_is in ("/rides", "/consumers", "/openapi.json"):
            assert there_is in answer.json()["detail"]
    for ride_id in (999999999, 10**30):
        answer = client.get(f"/rides/{ride_id}")
        assert is_problem(answer, 404)
        assert answer.json()["detail"] == f"there is no ride {ride_id}"
    assert is_problem(client.options("/rides"), 405)
    for key in ("", "a b", "a,b", "é".encode().decode("latin-1"), "x" * (KEY_LENGTH + 1)):
        sent = {"Idempotency-Key": key.encode("latin-1")}
        answer = client.post("/rides", data={"distance": "5"}, headers=sent)  # type: ignore[arg-type]
        assert is_problem(answer, 400)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/rides", {"POST"}),
        ("DELETE", "/rides/1", {"GET", "HEAD"}),
        ("POST", "/consumers", {"GET", "HEAD"}),
    ],
)
def test_another_method_is_told_which_there_are(
    api_for_refusals: Api, method: str, path: str, allowed: set[str]
) -> None:
    answer = api_for_refusals.client.request(method, path)
    assert is_problem(answer, 405)
    assert set(answer.headers["allow"].split(", ")) == allowed
    assert set(re.findall("[A-Z]+", answer.json()["detail"])) == allowed


@pytest.fixture(scope="module")
def api_for_refusals(module_world: World) -> Iterator[Api]:
    """One API for all refusals; at the end not one ride has been taken."""
    api = Api(module_world)
    yield api
    assert api.service.stop() == 0
    assert "Traceback" not in api.service.output.read_text()
    assert module_world.truth == (module_world.start, 0)
