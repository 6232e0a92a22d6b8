"""The live page among people who mean harm: markup in all that it shows, and forged requests.

Nothing is shown as anything but text, and nothing is changed.
"""

import json
import re
from collections.abc import Iterator

import pytest

from tests.support.hostile_state import (
    ATTRIBUTE,
    ELEMENT,
    LINE,
    RENDERED,
    fill,
    write_entries,
)
from tests.support.markup import Markup
from tests.support.page import Event, Page, Served, serving
from tests.support.world import World, eventually

FORM = "application/x-www-form-urlencoded"
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@pytest.fixture(scope="module")
def victim(module_world: World) -> Iterator[Page]:
    """One page for all of them."""
    fill(module_world)
    page = Page(module_world)
    yield page
    assert page.html
    assert page.service.stop() == 0
    assert "Traceback" not in page.service.output.read_text()


def is_harmless(html: str) -> bool:
    """Whether no text has become an element, an attribute or the result of a template."""
    markup = Markup(html)
    assert not {name for name in markup.names if name.startswith((ELEMENT, ATTRIBUTE))}
    assert not [
        value
        for _, attributes in markup.elements
        for name, value in attributes.items()
        if name in ("href", "src", "action", "style", "formaction") and value and LINE in value
    ]
    assert RENDERED not in html
    assert not CONTROLS.search(html)
    assert f"<{ELEMENT}>" in markup.text  # it is there
    return True


def test_text_is_text_in_the_page_and_in_each_event(victim: Page) -> None:
    """In the first event, which has all that the page has, and in those that tell what is new."""
    assert is_harmless(victim.html)
    with victim.events() as events:
        assert is_harmless(html_of(next(events)))
        write_entries(victim.world)
        new = next(event for event in events if ELEMENT in event.data)
    assert LINE not in new.type
    assert is_harmless(html_of(new))


def html_of(event: Event) -> str:
    """All parts of the page, and lines of its feed, that an event brings."""
    tick = json.loads(event.data)
    return "".join([*tick["parts"].values(), *(item for _, item in tick["feed"])])


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


@pytest.mark.parametrize("path", ["/", "/events", "/metrics", "/break"])
def test_a_name_that_was_bound_anew_reads_nothing(victim: Page, path: str) -> None:
    headers = {"Host": f"elsewhere.example:{victim.port}"}
    with victim.client.stream("GET", path, headers=headers) as answer:
        assert 400 <= answer.status_code < 500
        assert len(answer.read()) < 200
