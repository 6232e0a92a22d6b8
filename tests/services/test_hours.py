"""`GET /hours` and `GET /days`: exact sums of minutes, and up to which ride they are right."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.api import Api, is_problem
from tests.support.rollup import hurry, lead, send_at
from tests.support.world import World

RIDES = [
    ("2026-03-01 09:59:59.999999Z", "999999999.999"),
    ("2026-03-01 10:00:00Z", "0.001"),
    ("2026-03-01 10:30:00Z", "999999999.999"),
    ("2026-03-01 10:59:59Z", "999999999.999"),
    ("2026-03-01 11:00:00Z", "1"),
    ("2026-03-01 23:59:59Z", "2"),
    ("2026-03-02 00:00:00Z", "3"),
    ("9999-12-31 23:59:59.999999Z", "4"),
]


@pytest.fixture(scope="module")
def live(module_world: World) -> Iterator[Api]:
    send_at(module_world, *RIDES)
    hurry(lead(module_world))
    api = Api(module_world)
    yield api
    api.client.close()


def asked(api: Api, path: str, first: str, until: str) -> Any:
    answer = api.client.get(path, params={"from": first, "to": until})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_hours_are_whole_exact_and_those_that_the_range_touches(
    live: Api, module_world: World
) -> None:
    text = live.client.get(
        "/hours", params={"from": "2026-03-01T10:00:00Z", "to": "2026-03-01T11:00:00Z"}
    ).text
    assert text.strip() == (
        '{"hours":[{"hour":"2026-03-01T10:00:00Z","rides":3,"distance":1999999999.999}],'
        f'"complete_to":{module_world.start + 8},"set_aside":[]}}'
    )
    for first, until, hours in [
        ("2026-03-01T10:59:00Z", "2026-03-01T11:00:00.000001Z", {"10": 3, "11": 1}),
        ("2026-03-01T12:29:00+02:30", "2026-03-01T10:00:00-00:30", {"09": 1, "10": 3}),
        ("2026-03-01t10:59:59.999999z", "2026-03-01 11:00:00Z", {"10": 3}),
        ("2026-03-02T01:00:00Z", "2026-03-03T00:00:00Z", {}),
        ("0001-01-01T00:00:00Z", "0001-01-01T01:00:00Z", {}),
        ("9999-12-31T23:00:00Z", "9999-12-31T23:59:59.999999Z", {"23": 1}),
    ]:
        shown = asked(live, "/hours", first, until)["hours"]
        assert {each["hour"][11:13]: each["rides"] for each in shown} == hours


def test_days_are_those_of_utc(live: Api, module_world: World) -> None:
    shown = asked(live, "/days", "2026-03-01T23:00:00Z", "2026-04-01T23:00:00Z")
    assert shown["complete_to"] == module_world.start + 8
    assert shown["days"] == [
        {"day": "2026-03-01T00:00:00Z", "rides": 6, "distance": 3000000003.0 - 0.002},
        {"day": "2026-03-02T00:00:00Z", "rides": 1, "distance": 3},
    ]
    last = asked(live, "/days", "9999-12-31T00:00:00Z", "9999-12-31T00:00:01Z")
    assert last["days"] == [{"day": "9999-12-31T00:00:00Z", "rides": 1, "distance": 4}]


GOOD = {"from": "2026-03-01T10:00:00Z", "to": "2026-03-01T11:00:00Z"}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no from": ({"to": GOOD["to"]}, "from is missing"),
    "two": (GOOD | {"to": [GOOD["to"]] * 2}, "to is given more than once"),
    "a date": (GOOD | {"from": "2026-03-01"}, "from must be a time as in RFC 3339"),
    "other digits": (GOOD | {"from": "٢٠٢٦-03-01T10:00:00Z"}, "from must be a time"),
    "a plus": (GOOD | {"from": "2026-03-01T10:00:00 02:00"}, "+ is written %2B"),
    "before the year 1": (GOOD | {"from": "0001-01-01T00:00:00+14:00"}, "from must be a time"),
    "after the year 9999": (GOOD | {"to": "9999-12-31T23:00:00-01:00"}, "to must be a time"),
    "backwards": ({"from": GOOD["to"], "to": GOOD["from"]}, "from must be before to"),
    "too long": (GOOD | {"to": "2026-04-01T10:00:00.000001Z"}, "at most 31 days"),
}


@pytest.mark.parametrize("path", ["/hours", "/days"])
def test_what_is_no_range_of_time_is_refused_with_a_reason(live: Api, path: str) -> None:
    for parameters, reason in REFUSED.values():
        answer = live.client.get(path, params=parameters)
        assert is_problem(answer, 422), reason
        assert reason in answer.json()["detail"]
    assert live.client.get(path, params=GOOD | {"to": "2026-04-01T10:00:00Z"}).status_code == 200
