"""The live page among people who mean harm: markup in all that it shows, and requests of all kinds.

Nothing is shown as anything but text; nothing is changed; everyone else is served.
"""

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple
from unicodedata import category

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from demo.page import Demolition
from lab.ports import free_ports
from rocket_rides.settings import Settings
from tests.support.facts import facts
from tests.support.hostile import CORPUS, SLOW, Slow, ask, go_on
from tests.support.hostile_state import (
    ATTRIBUTE,
    ELEMENT,
    LINE,
    RENDERED,
    TEXTS,
    fill,
    write_entries,
)
from tests.support.page import Event, Markup, Page
from tests.support.site import STOP_REDIS, Served, serving
from tests.support.world import PATIENCE, World, eventually

FORM = "application/x-www-form-urlencoded"
ONLOOKERS = 1000  # that the page has room for
MEGABYTE = 1e6
NO_TEXT = ("Cc", "Cf", "Cs", "Zl", "Zp")  # what a terminal, or a reader, would obey
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@pytest.fixture(scope="module")
def victim(module_world: World) -> Iterator[Page]:
    """One page for all of them."""
    fill(module_world)
    page = Page(module_world)
    yield page
    assert page.answers()
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


def test_text_is_text_in_the_page(victim: Page) -> None:
    assert is_harmless(victim.html)


def test_text_is_text_in_each_event(victim: Page) -> None:
    """In the first, which has all that the page has, and in those that tell what is new."""
    events = victim.events()
    assert is_harmless(html_of(next(events)))
    write_entries(victim.world)
    for event in events:
        assert LINE not in event.type
        if ELEMENT in event.data:
            assert is_harmless(html_of(event))
            return


def html_of(event: Event) -> str:
    """All parts of the page, and lines of its feed, that an event brings."""
    tick = json.loads(event.data)
    return "".join([*tick["parts"].values(), *(item for _, item in tick["feed"])])


def test_text_is_text_in_the_metrics(victim: Page) -> None:
    families = list(text_string_to_metric_families(victim.metrics))
    assert {family.name.partition("_")[0] for family in families} == {"rocket"}
    samples = [sample for family in families for sample in family.samples]
    assert {sample.name.partition("_")[0] for sample in samples} == {"rocket"}
    assert set(TEXTS) <= {value for sample in samples for value in sample.labels.values()}


def test_text_is_text_on_the_terminal(victim: Page) -> None:
    status = victim.world.service("watch.status")
    assert status.process.wait(PATIENCE) in (0, 1)
    said = status.output.read_text()
    assert {sign for sign in said if category(sign) in NO_TEXT} == {"\n"}
    assert not [line for line in said.split("\n") if line.startswith(LINE)]
    assert f"<{ELEMENT}>" in said
    status = victim.world.service("watch.status", "--json")
    assert status.process.wait(PATIENCE) in (0, 1)
    assert TEXTS[0] in str(json.loads(status.output.read_text()))


class Breakable(NamedTuple):
    """The page of a demo, and the ways in which it was broken."""

    page: Served
    broken: list[str]

    def form(self, **changed: str) -> tuple[dict[str, str], dict[str, str]]:
        """The form that breaks the fleet, as the page has it; and what a browser says of it."""
        fields = {**Markup(self.page.html).form("way"), **changed}
        assert fields.pop("action") == "/break"
        return fields, {"Origin": self.page.url, "Sec-Fetch-Site": "same-origin"}


@pytest.fixture(scope="module")
def breakable() -> Iterator[Breakable]:
    config, broken = Settings(watch_port=free_ports()), list[str]()

    def run(name: str, *_: object) -> None:
        broken.append(name)

    with serving(config, facts, Demolition(config, {"stop-redis": STOP_REDIS}, run)) as served:
        yield Breakable(served, broken)


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
    "a name that begins like an address": (
        {},
        {"Host": "127.0.0.1.elsewhere.example", "Origin": "http://127.0.0.1.elsewhere.example"},
        "POST",
    ),
    "a link": ({}, {}, "GET"),
    "another method": ({}, {}, "PUT"),
    "neither origin nor site": ({}, {"Origin": "", "Sec-Fetch-Site": ""}, "POST"),
    "through a proxy": ({}, {"X-Forwarded-For": "203.0.113.9"}, "POST"),
    "through another proxy": ({}, {"Via": "1.1 proxy"}, "POST"),
    "plain text": ({}, {"Content-Type": "text/plain"}, "POST"),
    "JSON": ({}, {"Content-Type": "application/json"}, "POST"),
    "a huge body": ({"x": "x" * 1_000_000}, {}, "POST"),
    "a way that there is not": ({"way": "drop-everything"}, {}, "POST"),
}


@pytest.mark.parametrize("kind", CROSS_SITE)
def test_a_request_that_is_not_from_the_page_changes_nothing(
    breakable: Breakable, kind: str
) -> None:
    form, different, method = CROSS_SITE[kind]
    fields, headers = breakable.form(**form)
    answer = breakable.page.client.request(
        method,
        "/break",
        data=fields,
        headers={
            name: value
            for name, value in {"Content-Type": FORM, **headers, **different}.items()
            if value
        },
    )
    assert 400 <= answer.status_code < 500
    assert answer.headers["content-type"].startswith("text/plain")
    assert not breakable.page.site.scene.breakage.way
    assert breakable.broken == []


def test_the_same_form_from_the_page_breaks_the_fleet() -> None:
    """Else the refusals would say nothing."""
    config, begun = Settings(watch_port=free_ports()), threading.Event()

    def run(*_: object) -> None:
        begun.set()

    with serving(config, facts, Demolition(config, {"stop-redis": STOP_REDIS}, run)) as served:
        fields, headers = Breakable(served, []).form()
        answer = served.client.post("/break", data=fields, headers=headers)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert begun.wait(PATIENCE)


@pytest.mark.parametrize("path", ["/", "/events", "/metrics", "/break"])
def test_a_name_that_was_bound_anew_reads_nothing(victim: Page, path: str) -> None:
    headers = {"Host": f"elsewhere.example:{victim.port}"}
    with victim.client.stream("GET", path, headers=headers) as answer:
        assert 400 <= answer.status_code < 500
        assert len(answer.read()) < 200


def test_where_this_is_no_demo_nothing_can_be_broken(victim: Page) -> None:
    headers = {"Origin": victim.url, "Sec-Fetch-Site": "same-origin"}
    answer = victim.client.post("/break", data={"way": "wipe-log"}, headers=headers)
    assert answer.status_code == 404
    assert "<form" not in victim.html


def test_what_is_no_request_is_refused_or_hung_up_on(victim: Page) -> None:
    """Some only after their time is up, so all at once."""

    def answers(kind: str) -> list[int]:
        received = ask(victim.port, adapted(CORPUS[kind]))
        statuses = re.findall(rb"HTTP/\d\.\d (\d{3}) ", received)
        assert statuses or not received
        return [int(status) for status in statuses]

    with ThreadPoolExecutor(len(CORPUS)) as threads:
        said = dict(zip(CORPUS, threads.map(answers, CORPUS), strict=True))
    assert {kind: told for kind, told in said.items() if not all(map(is_refusal, told))} == {}


def is_refusal(status: int) -> bool:
    return 400 <= status < 500


def test_who_is_slow_is_hung_up_on_while_others_are_served(victim: Page) -> None:
    """Those who send slowly, and those who ask for much and read none of it."""
    asking = {kind: (adapted(first), adapted(more)) for kind, (first, more) in SLOW.items()}
    waiting = [Slow(victim.port, *behaviour) for behaviour in list(asking.values()) * 10]
    while waiting:
        waiting = go_on(waiting)
        assert victim.client.get("/healthz", timeout=5).status_code == 200


def adapted(request: bytes) -> bytes:
    """A request to the API, as one to the page."""
    for there, here in (
        (b"Host: x\r\n", b"Host: localhost\r\n"),
        (b"/rides", b"/metrics"),
        (b"/openapi.json", b"/"),
    ):
        request = request.replace(there, here)
    return request


def silent(victim: Page) -> socket.socket:
    """An onlooker that never reads, and has little room for what comes."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    client.connect(("127.0.0.1", victim.port))
    client.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return client


def is_full(victim: Page) -> bool:
    """Whether there is no room for another onlooker."""
    with victim.client.stream("GET", "/events") as answer:
        assert answer.status_code in (200, 503)
        return answer.status_code == 503


def has_lost_most(process: psutil.Process, port: int) -> bool:
    """Whether most of the onlookers' connections are closed."""
    connections = process.net_connections("tcp")
    open_ones = [each for each in connections if each.status == psutil.CONN_ESTABLISHED]
    return sum(each.laddr.port == port for each in open_ones) < ONLOOKERS / 10


def test_a_thousand_who_never_read_are_cut_off_while_others_are_served(victim: Page) -> None:
    process = psutil.Process(victim.service.process.pid)
    before = process.memory_info().rss
    highest = 0

    def serving(claim: Callable[[], bool]) -> Callable[[], bool]:
        def look() -> bool:
            nonlocal highest
            highest = max(highest, process.memory_info().rss)
            assert victim.client.get("/", timeout=5).status_code == 200
            return claim()

        return look

    with ExitStack() as exits:
        for _ in range(ONLOOKERS):
            exits.enter_context(silent(victim))
        eventually(serving(lambda: is_full(victim)), "a thousand onlookers")
        gone = partial(has_lost_most, process, victim.port)
        eventually(serving(gone), "the end of those who never read", 120)
    assert next(victim.events()).data
    assert highest - before < 100 * MEGABYTE
