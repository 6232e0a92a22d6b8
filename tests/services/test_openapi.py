"""The API's description of itself: complete, and true of every answer of the live API.

Schemathesis makes requests from it, valid and invalid ones, and checks every answer against it.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

import httpx
import pytest
import schemathesis
from jsonschema import Draft202012Validator
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi import checks

from api.views import DESCRIPTION
from rocket_rides.settings import PROJECT
from tests.support.api import KEY_REUSED, MAYBE_TAKEN, NOT_TAKEN, OTHER_HISTORY, Api
from tests.support.rollup import hurry, lead
from tests.support.world import World, transaction

# The same examples in every run. The load of a test, not the search for faults: raise it for that.
EXAMPLES = 30

NO_RANGE = ("from must be before to", "from and to ")
REFUSALS = ["400", "404", "405", "411", "413", "415", "422"]

Case: TypeAlias = schemathesis.Case[Any]

schema = schemathesis.openapi.from_path(
    PROJECT / "api/openapi.json",
    config=SchemathesisConfig.from_dict(
        {
            "generation": {"deterministic": True, "max-examples": EXAMPLES, "database": "none"},
            # Schemathesis' own list lacks 411, which is what a form without any field gets.
            "checks": {"negative_data_rejection": {"expected-statuses": REFUSALS}},
        }
    ),
)

RESETS = """
    WITH reconciliation AS (
        INSERT INTO reconciliations
            (position, total_distance, rides, duration_seconds, compared)
        VALUES (cell_start() + 1, 539.837, 1, 0.5, '[]') RETURNING id
    )
    INSERT INTO resets (reconciliation_id, consumer_name, status, changed_at, from_position,
                        from_total, to_position, to_total)
    SELECT id, 'consumer0', 'pending', NULL::timestamptz, NULL::bigint, NULL::numeric,
           NULL::bigint, NULL::numeric FROM reconciliation
    UNION ALL
    SELECT id, 'consumer1', 'applied', now(), cell_start() + 1, 5,
           cell_start() + 1, 539.837 FROM reconciliation
"""
A_DAY = {"from": "2026-03-01T00:00:00Z", "to": "2026-03-02T00:00:00Z"}


@pytest.fixture(scope="module")
def live(module_world: World) -> Iterator[Api]:
    """An API that has something to show."""
    api = Api(module_world)
    assert api.post("539.837").headers["location"] == f"/rides/{module_world.start + 1}"
    for name in ("consumer0", "consumer1", "consumer2"):
        module_world.consumer(name)
    module_world.connection.execute(RESETS)
    hurry(lead(module_world))
    yield api
    api.client.close()
    assert api.service.stop() == 0
    assert "Traceback" not in api.service.output.read_text()


def check_against_description(case: Case, answer: Any) -> None:
    """All of Schemathesis' checks but one, where it can't know better.

    A valid request may be refused because an earlier example used its key for another distance:
    that equal keys mean equal rides, a schema can't say; nor that `from` comes before `to`, by at
    most 31 days; nor what was sent, in which term, and which types there are.
    """
    problem = answer.json() if answer.status_code in (400, 410, 422) else {}
    reused = problem.get("type") == KEY_REUSED
    no_range = str(problem.get("detail")).startswith(NO_RANGE)
    not_there = answer.status_code == 410 or str(problem.get("detail")).startswith("type must be")
    refused = reused or no_range or not_there
    case.validate_response(
        answer, excluded_checks=[checks.positive_data_acceptance] if refused else []
    )


@pytest.mark.proves("described")
@schema.parametrize()
def test_every_answer_is_as_described(case: Case, live: Api) -> None:
    check_against_description(case, case.call(base_url=str(live.client.base_url)))


def test_it_is_served_as_it_is_written_and_valid(live: Api) -> None:
    answer = live.client.get("/openapi.json")
    assert answer.content == DESCRIPTION
    assert answer.headers["content-type"] == "application/json"
    schema.validate()
    for described in answer.json()["components"]["schemas"].values():
        Draft202012Validator.check_schema(described)


def test_every_type_of_problem_is_explained_where_it_points(live: Api) -> None:
    for kind in (KEY_REUSED, OTHER_HISTORY, NOT_TAKEN, MAYBE_TAKEN):
        path, _, anchor = kind.partition("#")
        described = live.client.get(path).json()["components"]["schemas"]["ProblemType"]["oneOf"]
        [explained] = [one for one in described if one.get("$anchor") == anchor]
        assert explained["const"] == kind
        assert explained["description"]


FORM = {"Content-Type": "application/x-www-form-urlencoded"}
REFUSED: dict[int, dict[str, Any]] = {
    400: {"data": {"distance": "5"}, "headers": {"Idempotency-Key": "a,b"}},
    411: {"content": [b"distance=5"], "headers": FORM},
    413: {"data": {"distance": "5" * 17_000}},
    415: {"content": b"5", "headers": {"Content-Type": "text/plain"}},
    422: {"data": {"distance": "-5"}},
}


@pytest.mark.parametrize("status", REFUSED)
def test_each_kind_of_refusal_is_as_described(live: Api, status: int) -> None:
    answer = live.client.post("/rides", **REFUSED[status])
    assert answer.status_code == status
    is_as_described("/rides", "POST", answer)


def test_being_unavailable_is_as_described(live: Api, module_world: World) -> None:
    ride = str(module_world.start + 1)
    with transaction(module_world) as blocker:
        blocker.execute("LOCK TABLE rides, checkpoints, schema_versions, ride_minutes")
        of_ride = ("/rides/{ride_id}", "/rides/{ride_id}/receipt")
        for path in (*of_ride, "/consumers", "/hours", "/days", "/log", "/readyz"):
            answer = live.client.get(path.replace("{ride_id}", ride), params=A_DAY)
            assert answer.status_code == 503
            is_as_described(path, "GET", answer, ride_id=int(ride))
        answer = live.post("5")
        assert answer.status_code == 503
        is_as_described("/rides", "POST", answer)


def is_as_described(path: str, method: str, answer: httpx.Response, **parameters: int) -> None:
    answer.request.read()
    case = schema[path][method].Case(path_parameters=parameters)
    case.validate_response(
        answer,
        checks=[
            checks.status_code_conformance,
            checks.content_type_conformance,
            checks.response_headers_conformance,
            checks.response_schema_conformance,
        ],
    )


MOMENTS = {
    "infinity": "infinity",
    "0044-03-15 12:00:00+00 BC": "0044-03-15 12:00:00+00 BC",
    "10000-01-01 00:00:00.5+00": "10000-01-01 00:00:00.5+00",
    "2026-03-29 01:30:00+05:30": "2026-03-28T20:00:00Z",
}


def test_a_ride_of_any_time_is_shown_as_described(world: World) -> None:
    """Also in a zone whose offset had seconds once, and in a style that is not ISO's."""
    for setting in ("timezone = 'Europe/Berlin'", "datestyle = 'German'"):
        world.connection.execute(f"ALTER DATABASE {world.stream} SET {setting}")
    api = Api(world)
    for ride, (moment, shown) in enumerate(MOMENTS.items(), start=world.start + 1):
        world.take(5)
        world.connection.execute("UPDATE rides SET created_at = %s WHERE id = %s", [moment, ride])
        answer = api.client.get(f"/rides/{ride}")
        assert answer.json() == {"ride": {"id": ride, "distance": 5, "created_at": shown}}
        is_as_described("/rides/{ride_id}", "GET", answer, ride_id=ride)
    api.client.close()
