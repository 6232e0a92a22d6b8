"""The live page in a process of its own, a client for it, and parsers of its HTML and events."""

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import NamedTuple

import httpx

from lab.ports import free_ports
from tests.support.world import Service, World, eventually


class Page:
    """`python -m watch` on a world, and a client for it."""

    def __init__(self, world: World, **environment: str) -> None:
        self.world = world
        self.environment = environment
        self.port = free_ports()
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx.Client(
            base_url=self.url, timeout=30, limits=httpx.Limits(max_keepalive_connections=0)
        )
        self.start()

    def start(self) -> None:
        """Start it, or start it again on the same port, and wait for its page."""
        self.service: Service = self.world.service(
            "watch", WATCH_PORT=str(self.port), **self.environment
        )
        eventually(self.answers, "an answer of the live page")

    def answers(self) -> bool:
        assert self.service.process.poll() is None, self.service.output.read_text()
        try:
            return self.client.get("/").status_code == 200
        except httpx.TransportError:
            return False

    @property
    def html(self) -> str:
        return self.client.get("/").raise_for_status().text

    @property
    def metrics(self) -> str:
        return self.client.get("/metrics").raise_for_status().text

    def events(self) -> Iterator["Event"]:
        """The stream of events that the page's script receives; it does not end."""
        with self.client.stream("GET", "/events") as answer:
            answer.raise_for_status()
            yield from parsed(answer.iter_text())


class Event(NamedTuple):
    """A server-sent event."""

    type: str
    data: str


def parsed(stream: Iterator[str]) -> Iterator[Event]:
    """Parse server-sent events as the HTML standard says; fails at an unknown field."""
    kind, rest = "message", ""
    data: list[str] = []
    for text in stream:
        *lines, rest = (rest + text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in lines:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            match name:
                case "" if not line:
                    if data:
                        yield Event(kind, "\n".join(data))
                    kind, data = "message", []
                case "event":
                    kind = value
                case "data":
                    data.append(value)
                case _:
                    assert name in ("", "id", "retry"), line


class Markup(HTMLParser):
    """The elements, attributes and text of some HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.text += f"<!--{data}-->"

    @property
    def names(self) -> set[str]:
        """The names of all elements and attributes."""
        return {name for tag, attributes in self.elements for name in (tag, *attributes)}

    def form(self, field: str) -> dict[str, str]:
        """The fields that the first form with this field or button would send, and `action`."""
        forms: list[dict[str, str]] = []
        for tag, attributes in self.elements:
            if tag == "form":
                forms.append({"action": attributes.get("action") or "/"})
            elif forms and (name := attributes.get("name")) and name not in forms[-1]:
                forms[-1][name] = attributes.get("value") or ""
        return next(form for form in forms if field in form)
