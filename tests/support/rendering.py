"""The page, rendered in the test's own process from made-up facts."""

from typing import Any

from demo.breaking.ways import WAYS
from watch.facts import Facts
from watch.feed import Feed
from watch.history import History
from watch.page import Page, Rendered, Scene

STOP_REDIS = {"stop-redis": WAYS["stop-redis"]}


def rendered(
    seen: Facts, page: Page | None = None, feed: Feed | None = None, history: History | None = None
) -> tuple[Page, Rendered]:
    page = page or Page(Scene(token="the-token"))  # noqa: S106
    last = (seen.at, seen.database) if seen.database else None
    events = (feed or Feed()).newest()
    return page, page.render(seen, last, history or History(), events)


def html_of(seen: Facts, **given: Any) -> str:
    page, parts = rendered(seen, **given)
    return page.whole(parts).decode()
