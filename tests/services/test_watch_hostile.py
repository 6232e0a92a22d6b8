"""Forged requests to the live page: whoever sends one changes nothing."""

from collections.abc import Iterator

import pytest

from tests.support.page import Served, serving
from tests.support.world import eventually

FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def broken() -> list[str]:
    """The ways in which the fleet was broken."""
    return []


@pytest.fixture(scope="module")
def breakable(broken: list[str]) -> Iterator[Served]:
    """The page of a demo."""
    with serving(run=lambda way, *_: broken.append(way)) as served:
        yield served


ELSEWHERE = "http://elsewhere.example"
# What is different from a form that would be accepted: fields, headers, or the method.
CROSS_SITE: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "no token": ({"token": ""}, {}, "POST"),
    "a wrong token": ({"token": "0" * 22}, {}, "POST"),
    "a token that is not ASCII": ({"token": "\u00e9\ufffd"}, {}, "POST"),
    "another site's page": ({}, {"Origin": ELSEWHERE}, "POST"),
    "a sandboxed page": ({}, {"Origin": "null"}, "POST"),
    "another port of this machine": ({}, {"Origin": "http://127.0.0.1:1"}, "POST"),
    "another scheme": ({}, {"Origin": "https://127.0.0.1"}, "POST"),
    "another site, as the browser says": ({}, {"Sec-Fetch-Site": "cross-site"}, "POST"),
    "another origin of this site": ({}, {"Sec-Fetch-Site": "same-site"}, "POST"),
    "a name that was bound anew to 127.0.0.1": (
        {},
        {"Host": "elsewhere.example", "Origin": ELSEWHERE},
        "POST",
    ),
    "a link": ({}, {}, "GET"),
    "another method": ({}, {}, "PUT"),
    "neither origin nor site": ({}, {"Origin": "", "Sec-Fetch-Site": ""}, "POST"),
    "plain text": ({}, {"Content-Type": "text/plain"}, "POST"),
    "JSON": ({}, {"Content-Type": "application/json"}, "POST"),
    "a huge body": ({"x": "x" * 1_000_000}, {}, "POST"),
    "a way that there is not": ({"way": "drop-everything"}, {}, "POST"),
}


@pytest.mark.parametrize("kind", CROSS_SITE)
def test_a_request_that_is_not_from_the_page_changes_nothing(
    breakable: Served, broken: list[str], kind: str
) -> None:
    fields, different, method = CROSS_SITE[kind]
    headers = {"Content-Type": FORM, **breakable.browser, **different}
    answer = breakable.client.request(
        method,
        "/break",
        data=breakable.form(**fields),
        headers={name: value for name, value in headers.items() if value},
    )
    assert 400 <= answer.status_code < 500
    assert answer.headers["content-type"].startswith("text/plain")
    assert not breakable.site.scene.breakage.way
    assert broken == []


def test_the_same_form_from_the_page_breaks_the_fleet() -> None:
    """Else the refusals would say nothing."""
    begun: list[str] = []
    with serving(run=lambda way, *_: begun.append(way)) as served:
        answer = served.client.post("/break", data=served.form(), headers=served.browser)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert eventually(lambda: begun) == ["stop-redis"]
