"""`python -m lab.chaos`: a whole fleet, a nemesis that breaks it at random, and the proof.

It starts its own fleet on private servers: Postgres, Redis and its replica, an API, two streamers,
three totals, two rollups, a consumer of ratings and two workers for receipts. Clients post and rate
rides until they are answered; some stop half-way. Meanwhile a nemesis injects the faults that
`--faults` names, as the seed determines. Where there is Spark, the nightly job runs again and
again. Then all faults are undone, the fleet settles, what the job believes is tampered with, and
every ride is checked.

Status 0: no ride was lost, counted twice or out of order, and nothing else was wrong, except for
what a restore had to undo. Status 1: there is a line for each finding, and the folder of the logs
is kept. Ctrl-C ends a run with status 130, SIGTERM with 143; it leaves no processes or files.
"""

import argparse
import shlex
import sys

from demo.embedded import stock
from demo.embedded.stream_servers import STREAM_SERVERS
from lab.arguments import Arguments
from lab.chaos.faults import FAULTS
from lab.chaos.fleet import RATE, Fleet
from lab.chaos.machines import enter_own_namespace
from lab.chaos.nemesis import EVERY
from lab.chaos.outcome import judged
from lab.chaos.play import Play
from lab.place import Place, place, verdict


def main() -> int:
    options = arguments()
    print(f"seed {options.seed}", flush=True)
    with place("chaos", Place) as at:
        stock.require()
        server = STREAM_SERVERS[options.stream_server]
        fleet = Fleet(at.folder, server, disks=enter_own_namespace())
        at.exits.callback(fleet.stop)

        def played() -> tuple[list[str], str]:
            fleet.start()
            play = Play(fleet, options)
            play.run()
            return judged(play)

        seed = [] if "--seed" in sys.argv else ["--seed", str(options.seed)]
        again = shlex.join(seed + sys.argv[1:])
        return verdict(at, played, f"python -m lab.chaos {again}; ")


def arguments() -> argparse.Namespace:
    parser = Arguments("chaos", __doc__)
    add, number = parser.add_argument, parser.number
    parser.seed("--seed", "repeat an earlier plan")
    number("--seconds", 100, "duration of the faults; start and end take some 20 seconds more")
    number("--rate", RATE, "rides a second")
    number("--every", EVERY, "seconds from one fault to the next, on average")
    number("--recovery", 10, "seconds that totals may take to catch up after the last fault")
    kinds = f"only these: {', '.join(FAULTS)}"
    add("--faults", nargs="+", choices=FAULTS, default=[*FAULTS], metavar="FAULT", help=kinds)
    server = "what holds the log: Valkey 9.1 or Redis 6.2 (default: %(default)s)"
    add("--stream-server", choices=STREAM_SERVERS, default="valkey", help=server)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
