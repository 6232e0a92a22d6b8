"""`python -m watch.status`: shows what flows, how far everyone is, and whether all is well.

    python -m watch.status              one screen
    python -m watch.status --follow     the same, once a second, until Ctrl-C
    python -m watch.status --json       everything that is known, as one JSON object in a line

The exit status is 0 when all is well; 1 when something lags, disagrees or is dead, with a line that
says what; 2 when that can't be told, because a server can't be used; 3 when no fleet runs here, in
one line. So it serves as a probe. --follow waits for a fleet. It ends by Ctrl-C, with 0; or once
nobody reads the pipe that it writes to, with the status of its last look. It reads, and changes
nothing; it needs the two servers, and not the live page.

The JSON object has `status` (0 to 3), `problems` (each with `kind`: lags, disagrees, dead, away
or drift; and `what`, a sentence), `notices` (sentences), and the facts as watch/facts.py describes
them, under its names: `at`, `postgres` and `redis` (each with `up` and `reason`), `database` (null
unless Postgres can be used), `log` (null unless Redis can) and `gathered_in_seconds`.
`database.agreement` also has `agree`. Distances are in metres, with all of their digits.
"""

import argparse
import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from errno import ECONNREFUSED, ENOENT
from textwrap import wrap
from typing import Any

import msgspec

from rocket_rides import fleet, settings
from rocket_rides.process import Parser
from rocket_rides.settings import Settings
from rocket_rides.words import plain
from watch.facts import Facts, Server
from watch.gathering import Gatherer
from watch.screen import screen
from watch.verdict import ABSENT, notices, problems

EVERY, SOON = 1.0, 0.2  # seconds
SETTLED = ABSENT + 1  # seconds
NO_FLEET = 3  # the exit status
NOBODY = "no fleet runs on these servers: none of its processes has a session with Postgres"
MORE = "There is more than this terminal has room for."
USUAL = 80, 24  # columns and rows
START_AGAIN, CLEAR = "\x1b[H", "\x1b[J"  # the cursor to the top; what is below it

NOBODY_LISTENS = os.strerror(ENOENT), os.strerror(ECONNREFUSED)  # at a Unix socket
NOT_ASCII = re.compile(r"[^ -~]")

_as_json = msgspec.json.Encoder(decimal_format="number").encode


def parse_options(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line, or the end of the process with one clear line."""
    parser = Parser("python -m watch.status", __doc__)
    parser.add_argument("--follow", action="store_true", help="once a second, until Ctrl-C")
    parser.add_argument("--json", action="store_true", help="for programs")
    return parser.parse_args(arguments)


def status(facts: Facts) -> int:
    """The exit status."""
    kinds = {problem.kind for problem in problems(facts)}
    return 2 if "away" in kinds else 1 if kinds else 0


def in_json(facts: Facts, exit_status: int) -> str:
    """Everything that is known, as a JSON object in one line."""
    known: dict[str, Any] = msgspec.to_builtins(facts, builtin_types=(Decimal,))
    if facts.database and facts.database.agreement:
        known["database"]["agreement"]["agree"] = facts.database.agreement.agree
    found = [{"kind": problem.kind, "what": plain(problem.what)} for problem in problems(facts)]
    noticed = [plain(notice) for notice in notices(facts)]
    told = {"status": exit_status, "problems": found, "notices": noticed}
    # In ASCII: no control character of a name reaches a terminal.
    return NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], _as_json(told | known).decode())


def no_fleet(facts: Facts, config: Settings) -> str:
    """A sentence where neither a fleet's servers nor its processes are there; else nothing."""
    if config.embedded_postgres or config.embedded_redis:
        missing = (config.embedded_postgres and _is_stopped(facts.postgres)) or (
            config.embedded_redis and _is_stopped(facts.redis)
        )
        runs = not missing or fleet.servers(config.data_dir)
        where = config.data_dir.absolute()
        return "" if runs else f"no fleet runs on {where}; `make fleet` starts it"
    known = facts.redis.up and facts.database
    return NOBODY if known and not known.anybody else ""


def _is_stopped(server: Server) -> bool:
    return any(sign in server.reason for sign in NOBODY_LISTENS)


def looks(gatherer: Gatherer, follow: bool) -> Iterator[Facts]:
    """One look, or one a second without end.

    Where a server seems to be away, the one look is repeated once: it may only have been busy.
    Where somebody is missing, it is repeated until they are back or missing for good; for SETTLED
    seconds at most, because of many it may always be another.
    """
    facts = gatherer.gather()
    if not follow and not (facts.postgres.up and facts.redis.up):
        time.sleep(SOON)
        facts = gatherer.gather()
    due = time.monotonic()
    while (
        not follow
        and time.monotonic() < due + SETTLED
        and problems(facts, absent=0) != problems(facts)
    ):
        time.sleep(SOON)
        facts = gatherer.gather()
    yield facts
    while follow:
        due = max(due + EVERY, time.monotonic())
        time.sleep(max(0, due - time.monotonic()))
        yield gatherer.gather()


def terminal_size() -> tuple[int, int]:
    """Its columns and rows now: COLUMNS and LINES may be those of before it was resized."""
    with suppress(OSError):
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
        if columns and rows:
            return columns, rows
    return USUAL


def in_place(lines: list[str], columns: int, rows: int) -> str:
    """What shows the lines in place of those before them, on a terminal of that size.

    A line that is too long takes as many rows as it needs. Where there is no room for all, the last
    row says so.
    """
    room = rows - 1  # the cursor's own
    folded = [row for line in lines for row in wrap(line, columns) or [""]]
    if len(folded) > room:
        folded[max(0, room - 1) :] = [MORE[:columns]]
    return START_AGAIN + "".join(f"{row}\x1b[K\n" for row in folded[:room]) + CLEAR


def main() -> int:
    """Print the facts, and return the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the process quietly
    options, config = parse_options(), settings.load()
    if options.follow:  # its usual end: whoever started this, such as make, is told of no error
        signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    gatherer = Gatherer(config)
    refreshes = options.follow and not options.json and sys.stdout.isatty()
    found = 0
    try:
        for facts in looks(gatherer, options.follow):
            found, nobody = status(facts), no_fleet(facts, config)
            if options.follow and facts.database:  # it waits for a fleet, and shows what is there
                nobody = ""
            if nobody:
                found = NO_FLEET
            if options.json:
                lines = [in_json(facts, found)]
            else:
                lines = [nobody] if nobody else screen(facts, on_top=refreshes)
            if refreshes:
                text = in_place(lines, *terminal_size())
            else:
                text = "".join(f"{line}\n" for line in [*lines, *[""] * (len(lines) > 1)])
            print(text, end="", flush=True)  # noqa: T201
    except BrokenPipeError:  # whoever read this has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    gatherer.close()
    return found


if __name__ == "__main__":
    raise SystemExit(main())
