"""`python -m lab.upgrade`: a rolling upgrade under load, the way back, and the books.

It starts a fleet of the last release on servers of its own, behind HAProxy: two APIs, two
streamers, three totals, two rollups, a consumer of ratings and two workers for receipts. Clients
post and rate rides all the time. First every process is restarted as it is, one by one; then the
newer schema is made beside the running fleet, and each process is restarted with the newer code;
with the older one again, while that is still served; and forward. Last comes a schema that no
longer serves the last release.

The last release is the one that CHANGELOG.md names with its commit, or the commit from which the
newest one upgrades, or `--commit`; where no release's schema can be upgraded, the code here stands
for it.

Status 0: no step refused a request more than the unchanged roll did, and every ride counted once.
Status 1: there is a line for each finding, and the folder of the logs is kept. Ctrl-C ends a drill
with status 130, SIGTERM with 143; it leaves no processes or files.
"""

import argparse
import random
import sys

from demo.embedded import stock
from demo.embedded.failures import NeverStarts
from lab.arguments import positive
from lab.books import verdict
from lab.haproxy import HAPROXY
from lab.stage import Stage, stage
from lab.upgrade.drill import Drill
from lab.upgrade.releases import made
from lab.upgrade.verdict import findings, shown
from unified_log.process import Parser

SECONDS, RATE = 10, 40


def main() -> int:
    """Return 0 if the upgrade cost nothing, else 1."""
    options = arguments()
    if sys.platform != "linux" or not HAPROXY:
        raise SystemExit("the drill needs Linux and HAProxy")
    with stage("upgrade", Stage) as place:
        try:
            stock.require()
            releases = made(place.folder, options.commit)
        except NeverStarts as reason:
            raise SystemExit(str(reason)) from None
        except OSError as reason:
            raise SystemExit(f"the releases can't be had from git: {reason}") from None
        print(f"seed {options.seed}; the last release is {releases.said}", flush=True)
        drill = Drill(place, releases, options.seed, options.rate)
        return verdict(
            place,
            lambda: drill.run(options.seconds),
            lambda: findings(drill.steps),
            lambda: shown(drill.steps),
        )


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = Parser("python -m lab.upgrade", __doc__)
    new = random.randrange(2**32)
    add = parser.add_argument
    add("--seed", type=int, default=new, help="of the clients (default: a new one)")
    seconds = "that each step takes at least (default: %(default)s)"
    add("--seconds", type=positive, default=SECONDS, help=seconds)
    add("--rate", type=positive, default=RATE, help="rides a second (default: %(default)s)")
    add("--commit", help="what stands for the last release")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
