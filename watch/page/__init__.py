"""The page: rendered here, once per look for all who look on.

The page consists of a frame and of *parts*, each the block of a template under `fragments/` and an
element of the page by that id. An onlooker is sent the parts that changed. All wording is in the
templates, which escape whatever a ride, a name or an entry says; the script only replaces parts.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from markupsafe import Markup

from rocket_rides import words
from watch.facts import Database, Facts, Reader
from watch.feed import KEPT, Happening
from watch.history import History
from watch.page import charts
from watch.page.slots import SLOTS, Slots
from watch.page.templates import FRAGMENTS, FRAME, SCRIPT, STYLE, VERSION, block, with_block
from watch.verdict import LATE, RECEIPTS_LATE, notices, problems

# Seconds. Who is behind by more is pointed out, though it is no problem yet. A receipt that its
# receiver puts off comes after one second, and then after three more.
NOTED = 1.5
RECEIPTS_NOTED = 3.0


@dataclass
class Breakage:
    """Whether the fleet is being broken on purpose, and what was last said about it."""

    way: str = ""  # under way; empty when none is
    meanwhile: str = ""  # what is so while it is
    going_on: str = ""  # stays when it is over


@dataclass
class Scene:
    """What a page is rendered from, besides the facts."""

    changeable: bool = False  # whether there are buttons that change anything
    ways: Mapping[str, Any] = field(default_factory=dict)  # to break it; empty outside the demo
    breakage: Breakage = field(default_factory=Breakage)
    token: str = field(default_factory=lambda: secrets.token_urlsafe(16))


@dataclass(frozen=True)
class Rendered:
    """The parts of the page, by the ids of their elements; the feed, the newest first."""

    parts: dict[str, str]
    feed: list[tuple[str, str]]
    taken: int | None
    sent: int | None  # to the log


class Page:
    """Renders the page, and remembers which dead receipt is in which slot."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._slots = Slots()

    def render(
        self,
        facts: Facts,
        last: tuple[datetime, Database] | None,
        history: History,
        events: Sequence[tuple[int, Happening]],
    ) -> Rendered:
        """All parts. `last` is the newest database that was seen, and when."""
        seen_at, database = last or (facts.at, None)
        values = self._values(facts, seen_at, database, history)
        parts = {}
        for template in FRAGMENTS:
            for name in template.blocks:
                if name not in ("slot", "event"):
                    parts[name.replace("_", "-")] = block(template, name, values)
        if database:
            self._slots.fill(database.receipts.newest_dead)
        for place, name in enumerate(SLOTS):
            slot = {**values, "letter": self._slots.letters[place], "place": place}
            parts[name] = block(with_block("slot"), "slot", slot)
        rides = database.rides if database else None
        taken, sent = (rides.taken, rides.sent) if rides else (None, None)
        return Rendered(parts, [_item(*each) for each in events], taken, sent)

    def whole(self, rendered: Rendered) -> bytes:
        """The page as a document."""
        html = FRAME.render(
            style=Markup(STYLE),  # noqa: S704  # our own file
            script=Markup(SCRIPT),  # noqa: S704  # our own file
            version=VERSION,
            breakable=bool(self.scene.ways),
            slots=SLOTS,
            fragments={name: Markup(part) for name, part in rendered.parts.items()},  # noqa: S704  # escaped
            feed=[(name, Markup(item)) for name, item in rendered.feed],  # noqa: S704  # escaped
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
        return {
            "facts": facts,
            "database": database,
            "rides": database.rides if database else None,
            "agreement": database.agreement if database else None,
            "stale": facts.database is None,
            "seen_at": seen_at,
            "totals": [reader for reader in readers if reader.kind == "total"],
            "guests": sorted(
                (each for each in readers if not each.is_ours),
                key=lambda each: each.seconds_behind or 0,
                reverse=True,
            ),
            "counting": sorted(
                (each for each in readers if each.counts),
                key=lambda each: (not each.is_ours, each.kind != "total", each.name),
            ),
            "problems": problems(facts),
            "notices": notices(facts),
            "charts": {
                "rides": charts.minutes(history.rides(), words.rate),
                "lag": charts.minutes(history.lag(), words.latency),
                "latency": charts.minutes(history.latency(), words.latency),
            },
            "dash": words.DASH,
            "behind": list(_behind(readers)),
            "noted": NOTED,
            "receipts_noted": RECEIPTS_NOTED,
            "late": LATE,
            "receipts_late": RECEIPTS_LATE,
            "changeable": self.scene.changeable,
            "ways": self.scene.ways,
            "breakage": self.scene.breakage,
            "token": self.scene.token,
        }


@lru_cache(2 * KEPT)  # of them all, one or two are new at a look
def _item(number: int, event: Happening) -> tuple[str, str]:
    """An event's id, and its HTML."""
    item = block(with_block("event"), "event", {"event": event, "event_number": number})
    return f"event-{number}", item


def _behind(readers: Sequence[Reader]) -> Iterator[Reader]:
    """Those of ours that are behind for so long that it is said, the worst first."""
    for reader in sorted(readers, key=lambda each: each.seconds_behind or 0, reverse=True):
        if reader.is_ours and reader.kind != "group" and (reader.seconds_behind or 0) > NOTED:
            yield reader
