"""The page: rendered here, once per look, for all onlookers.

The page consists of a frame and of *parts*. Each part is a block of a template under `fragments/`,
and the element of the page with that id. An onlooker is sent the parts that changed. The templates
escape whatever a ride, a name or an entry says; the script only replaces parts.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from markupsafe import Markup

from rocket_rides import words
from watch.facts import Database, Facts, Reader
from watch.feed import KEPT, Event
from watch.history import History
from watch.page import charts
from watch.page.templates import FRAME, NOTED, PARTS, block
from watch.problems import notices, problems

KINDS = ("total", "rollup")  # that have places of their own


@dataclass
class Breakage:
    """Whether the fleet is being broken on purpose, and what was last said about it."""

    way: str = ""  # under way; empty when none is
    meanwhile: str = ""  # what is the case while it is under way
    going_on: str = ""  # stays when it is over


@dataclass
class Scene:
    """What a page is rendered from, besides the facts."""

    ways: Mapping[str, Any] = field(default_factory=dict)  # to break it; empty outside the demo
    breakage: Breakage = field(default_factory=Breakage)
    token: str = field(default_factory=lambda: secrets.token_urlsafe(16))


@dataclass(frozen=True)
class Rendered:
    """The parts of the page, by the ids of their elements; the feed, the newest first."""

    parts: dict[str, Markup]
    feed: list[tuple[str, Markup]]
    taken: int | None
    sent: int | None  # to the log


class Page:
    """Renders the page."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def render(
        self,
        facts: Facts,
        last: tuple[datetime, Database] | None,
        history: History,
        events: Sequence[tuple[int, Event]],
        starting: bool = False,
    ) -> Rendered:
        """All parts. `last` is the newest database that was seen, and when.

        While the fleet is `starting`, a server that is not there is no fault.
        """
        seen_at, database = last or (facts.at, None)
        values = self._values(facts, seen_at, database, history)
        values["starting"] = starting and not (facts.postgres.up and facts.redis.up)
        parts = {name.replace("_", "-"): block(name, values) for name in PARTS}
        rides = database.rides if database else None
        taken, sent = (rides.taken, rides.sent) if rides else (None, None)
        return Rendered(parts, [_item(*each) for each in events], taken, sent)

    def whole(self, rendered: Rendered) -> bytes:
        """The page as a document."""
        html = FRAME.render(
            breakable=bool(self.scene.ways),
            fragments=rendered.parts,
            feed=rendered.feed,
        )
        return html.encode()

    def _values(
        self,
        facts: Facts,
        seen_at: datetime,
        database: Database | None,
        history: History,
    ) -> dict[str, Any]:
        readers: Sequence[Reader] = database.readers if database else ()
        slowest = sorted(readers, key=lambda each: each.seconds_behind or 0, reverse=True)
        return {
            "facts": facts,
            "database": database,
            "rides": database.rides if database else None,
            "agreement": database.agreement if database else None,
            "stale": facts.database is None,
            "seen_at": seen_at,
            "totals": [reader for reader in readers if reader.kind == "total"],
            "rollup_reader": next((reader for reader in readers if reader.kind == "rollup"), None),
            "others": [each for each in readers if each.is_own and each.kind not in KINDS],
            "guests": [reader for reader in slowest if not reader.is_own],
            "behind": [reader for reader in slowest if _is_behind(reader)],
            "counting": sorted(
                (each for each in readers if each.counts),
                key=lambda each: (not each.is_own, each.kind != "total", each.name),
            ),
            "problems": problems(facts),
            "notices": notices(facts),
            "charts": {
                "rides": charts.minutes(history.rides(), words.rate),
                "lag": charts.minutes(history.lag(), words.latency),
                "latency": charts.minutes(history.latency(), words.latency),
            },
            **vars(self.scene),
        }


@lru_cache(2 * KEPT)  # at each look, only one or two of them are new
def _item(number: int, event: Event) -> tuple[str, Markup]:
    """An event's id, and its HTML."""
    return f"event-{number}", block("event", {"event": event, "event_number": number})


def _is_behind(reader: Reader) -> bool:
    """Whether one of ours is behind for so long that it is said."""
    return reader.is_own and (reader.seconds_behind or 0) > NOTED
