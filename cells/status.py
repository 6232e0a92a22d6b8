"""`python -m cells.status URL...`: all cells in one table, as their live pages tell it.

All pages are asked at once. One that does not answer is away, and its cell is in no sum: the
table's last line says how many cells its total is of. Each cell's totals are taken at a position of
its own, at which they agree. The exit status is the worst cell's, as `python -m watch.status` has
it: 2 if a page is away.
"""

import asyncio
import signal
import sys
from collections.abc import Sequence
from decimal import Decimal
from functools import reduce
from typing import NamedTuple

import aiohttp
import msgspec

from rocket_rides.cells import CELL_SIZE
from rocket_rides.distance import EXACT, NONE
from rocket_rides.urls import http
from rocket_rides.words import metres
from unified_log.errors import in_one_line
from unified_log.process import Parser, show
from unified_log.words import DASH, age, aligned, count, number, plain, printable
from watch.facts import NO_ANSWER, Database, Facts
from watch.problems import problems
from watch.screen import WELL
from watch.status import status

TIME = 5.0  # seconds; a page may wait three for its own look


class Told(NamedTuple):
    """What a cell's page says; or why it does not."""

    url: str
    facts: Facts | None
    wrong: list[str]  # what is not well, in sentences

    @property
    def database(self) -> Database | None:
        return self.facts.database if self.facts else None

    @property
    def cell(self) -> int | None:
        """Its number, as its positions tell."""
        return self.database.rides.last_sent // CELL_SIZE if self.database else None

    @property
    def total(self) -> Decimal | None:
        """The one that all of its totals agree on; None if there is none."""
        known = self.database and self.database.agreement
        return next(iter(known.totals.values()), None) if known and known.agree else None


async def ask(urls: Sequence[str]) -> list[Told]:
    """What the pages at these URLs say, within TIME."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(TIME)) as client:
        return await asyncio.gather(*(_ask(client, url) for url in urls))


async def _ask(client: aiohttp.ClientSession, url: str) -> Told:
    try:
        async with client.get(f"{url.rstrip('/')}/status.json", raise_for_status=True) as answer:
            facts = msgspec.json.decode(await answer.read(), type=Facts)
    except (aiohttp.ClientError, OSError, ValueError) as error:  # a time-out is an OSError
        reason = NO_ANSWER if isinstance(error, TimeoutError) else printable(in_one_line(error))
        return Told(url, None, [f"its page is away: {reason}"])
    return Told(url, facts, [problem.what for problem in problems(facts)])


def screen(told: Sequence[Told]) -> list[str]:
    """The lines: a cell in each, the whole, and what is not well."""
    rows = [("cell", "health", "records", "total, m", "behind", "page"), *map(_row, told)]
    totals = [each.total for each in told if each.total is not None]
    whole = metres(reduce(EXACT.add, totals, NONE))
    rows.append((f"{len(totals)} of {len(told)}", "", "", whole, "", ""))
    wrong = [f"NOT WELL: {each.url}: {what}" for each in told for what in each.wrong]
    return [plain(line) for line in (*aligned(rows, "<<>>><"), "", *(wrong or [WELL]))]


def _row(each: Told) -> tuple[str, ...]:
    health = count(len(each.wrong), "problem") if each.wrong else "well"
    if (known := each.database) is None:
        return DASH, health if each.facts else "away", DASH, DASH, DASH, each.url
    ours = [reader for reader in known.readers if reader.is_own]
    behind = max((reader.seconds_behind or 0 for reader in ours), default=0)
    total = DASH if each.total is None else metres(each.total)
    return number(each.cell), health, number(known.rides.taken), total, age(behind), each.url


def parse(arguments: Sequence[str] | None = None) -> list[str]:
    """The URLs of the command line, or the end of the process with one clear line."""
    parser = Parser("python -m cells.status", __doc__)
    pages = "the cells' live pages"
    parser.add_argument("urls", nargs="+", type=http, metavar="URL", help=pages)
    urls: list[str] = parser.parse_args(arguments).urls
    return urls


def main() -> None:
    """Print the table, and end the process with the status."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the process quietly
    told = asyncio.run(ask(parse()))
    known = [each.cell for each in told if each.cell is not None]
    if len(known) > len({*known}):  # it would count twice
        show(["two of these pages are the same cell's: give each cell's page once"])
        sys.exit(2)
    show([*screen(told), ""])
    sys.exit(max(status(each.facts) if each.facts else 2 for each in told))


if __name__ == "__main__":
    main()
