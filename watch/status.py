"""`python -m watch.status`: shows what flows, how far everyone is, and whether all is well.

    python -m watch.status           one screen
    python -m watch.status --json    everything that is known, as one JSON object in a line

The exit status is 0 when all is well; 1 when something lags, drifts, disagrees, is dead or is held
until a person decides, with a line that says what; 2 when that can't be told, because a server
can't be used; 3 when no fleet runs here, in one line. So it serves as a probe. It reads, and
changes nothing; it needs the two servers, and not the live page.

The JSON object has `status` (0 to 3), `problems` (each with `kind`: lags, disagrees, dead, away,
drift or held; and `what`, a sentence), `notices` (sentences), and the facts as watch/facts.py and
watch/runs.py describe them, under their names: `at`, `postgres` and `redis` (each with `up`
and `reason`), `database` (null unless Postgres can be used), `log` (null unless Redis can),
`gathered_in_seconds` and `looked_at`.
`database.agreement` also has `agree`. Distances are in metres, with all of their digits.
"""

import argparse
import json
import os
import re
import signal
import sys
import time
from contextlib import closing
from decimal import Decimal
from errno import ECONNREFUSED, ENOENT
from typing import Any

import msgspec

from rocket_rides import fleet, settings
from rocket_rides.settings import Settings
from unified_log import unreachable
from unified_log.process import Parser, show
from unified_log.words import plain
from watch.asking_postgres import TURN
from watch.facts import NO_ANSWER, Facts, Server
from watch.gathering import Gatherer
from watch.problems import ABSENT, notices, problems
from watch.screen import screen

SOON, SETTLED = 0.2, ABSENT + 1  # seconds
NO_FLEET = 3  # the exit status
NOBODY = "no fleet runs on these servers: none of its processes has a session with Postgres"
NOBODY_LISTENS = os.strerror(ENOENT), os.strerror(ECONNREFUSED)  # at a Unix socket
NOT_ASCII = re.compile(r"[^ -~]")

_as_json = msgspec.json.Encoder(decimal_format="number").encode


def parse_options() -> argparse.Namespace:
    """The command line, or the end of the process with one clear line."""
    parser = Parser("python -m watch.status", __doc__)
    parser.add_argument("--json", action="store_true", help="print everything as one JSON object")
    return parser.parse_args()


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
    """A sentence if embedded servers are stopped, or other servers have no fleet; else nothing."""
    if config.embedded_postgres or config.embedded_redis:
        missing = (config.embedded_postgres and _is_stopped(facts.postgres)) or (
            config.embedded_redis and _is_stopped(facts.redis)
        )
        return fleet.not_started(config.data_dir) if missing else ""
    known = facts.redis.up and facts.database
    return NOBODY if known and not known.anybody else ""


def _is_stopped(server: Server) -> bool:
    return any(sign in server.reason for sign in NOBODY_LISTENS)


def look(gatherer: Gatherer, hosts: int = 1) -> Facts:
    """The facts, once it is clear what is wrong and what was merely busy.

    A server that seems to be away is asked once more; one that does not answer, for some seconds,
    until each of Postgres' `hosts` had its turn: an earlier one may hang, or the machine be busy.
    Where a process is missing, it looks until the process is back or missing for good; for SETTLED
    seconds at most, since of many processes another one may always be missing.
    """
    due = time.monotonic() + TURN * max(hosts, 2)
    facts = gatherer.gather()
    if not (facts.postgres.up and facts.redis.up):
        time.sleep(SOON)
        facts = gatherer.gather()
    while NO_ANSWER in (facts.postgres.reason, facts.redis.reason) and time.monotonic() < due:
        time.sleep(SOON)
        facts = gatherer.gather()
    due = time.monotonic() + SETTLED
    while time.monotonic() < due and problems(facts, absent=0) != problems(facts):
        time.sleep(SOON)
        facts = gatherer.gather()
    return facts


def of_this_fleet(*, as_json: bool) -> tuple[list[str], int]:
    """The lines about it, and the exit status."""
    config = settings.load()
    with closing(Gatherer(config)) as gatherer:
        facts = look(gatherer, len(unreachable.hosts(config.postgres_url)))
    nobody = no_fleet(facts, config)
    found = NO_FLEET if nobody else status(facts)
    if as_json:
        return [in_json(facts, found)], found
    return [nobody] if nobody else [*screen(facts), ""], found


def main() -> int:
    """Print the facts, and return the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the process quietly
    lines, found = of_this_fleet(as_json=parse_options().json)
    show(lines)
    return found


if __name__ == "__main__":
    found = main()
    sys.stdout.flush()
    os._exit(found)  # as every process that used a Gatherer
