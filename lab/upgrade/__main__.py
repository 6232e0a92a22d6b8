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

import sys
from functools import partial

from demo.embedded import stock
from lab.arguments import Arguments
from lab.balancer import HAPROXY
from lab.books import played
from lab.place import place, verdict
from lab.stage import Stage
from lab.upgrade.drill import Drill
from lab.upgrade.releases import made
from lab.upgrade.verdict import findings, shown


def main() -> int:
    parser = Arguments("upgrade", __doc__)
    parser.seed("--seed", "of the clients")
    parser.number("--seconds", 10, "that each step takes at least")
    parser.number("--rate", 40, "rides a second")
    parser.add_argument("--commit", help="what stands for the last release")
    options = parser.parse_args()
    if sys.platform != "linux" or not HAPROXY:
        raise SystemExit("the drill needs Linux and HAProxy")
    with place("upgrade", Stage) as stage:
        stock.require()
        try:
            releases = made(stage.folder, options.commit)
        except OSError as reason:
            raise SystemExit(f"the releases can't be had from git: {reason}") from None
        print(f"seed {options.seed}; the last release is {releases.said}", flush=True)
        drill = Drill(stage, releases, options.seed, options.rate)
        steps = drill.steps
        run = partial(drill.run, options.seconds)
        return verdict(stage, lambda: played(run, lambda: findings(steps), lambda: shown(steps)))


if __name__ == "__main__":
    raise SystemExit(main())
