"""`python -m lab.chaos`: a whole fleet, a nemesis that breaks it at random, and the proof.

It starts its own fleet on private servers: Postgres, Redis and its replica, an API, two streamers,
three totals, two rollups and two workers that deliver receipts, with 10 % double sends and consumer
crashes throughout. Clients post rides and retry until they are answered; some stop half-way.
Meanwhile a nemesis breaks processes, servers, connections, the network, the log and the receiver of
receipts, fills memory and disks, sets clocks, lets another fleet write to the log, fails over, and
restores Postgres from backups, all as the seed determines. Where there is Spark, the nightly job
runs again and again, is killed, and has to find what the nemesis has falsified. Then every fault
is undone, the fleet settles, and every ride is checked.

Status 0: no ride was lost, counted twice or out of order, and nothing else was wrong, except for
what a restore had to undo. Status 1: there is a line for each finding, and the folder of the logs
is kept. Ctrl-C ends a run with status 130, SIGTERM with 143; it leaves no processes or files.

The seed decides which faults come, when, and on what. What they interrupt depends on the machine.
"""

import signal
import sys

import psycopg
from tqdm import tqdm

from demo.embedded import stock
from demo.embedded.failures import NeverStarts, ServerFailed
from demo.embedded.stream_servers import STREAM_SERVERS
from lab.chaos.disks import enter_own_namespace
from lab.chaos.fleet import Fleet
from lab.chaos.options import arguments
from lab.chaos.outcome import judged
from lab.chaos.play import Play
from lab.chaos.table import table
from rocket_rides.errors import Unavailable

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main() -> int:
    """Return 0 if every ride counted once, else 1."""
    options = arguments(__doc__)
    print(f"seed {options.seed}", flush=True)
    # SIGINT too: a shell has the programs that it starts in the background ignore it.
    for each in SIGNALS:
        signal.signal(each, lambda number, _: sys.exit(128 + number))
    try:
        stock.require()
        fleet = Fleet(STREAM_SERVERS[options.stream_server], disks=enter_own_namespace())
    except NeverStarts as reason:
        raise SystemExit(str(reason)) from None
    keep = True
    try:
        fleet.start()
        with tqdm(
            total=options.seconds,
            unit="s",
            disable=None,  # only on a terminal
            bar_format="{l_bar}{bar}| {n:.0f}/{total:.0f} s, {remaining} left, {postfix}",
        ) as bar:
            play = Play(fleet, options)
            play.run(bar)
            outcome = judged(play)
        keep = bool(outcome.findings)
    except (ServerFailed, TimeoutError, Unavailable, psycopg.Error) as reason:
        print(f"{reason}; the logs are in {fleet.folder}", file=sys.stderr)
        return 1
    except SystemExit:  # by a signal
        keep = False
        raise
    finally:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        fleet.stop(keep=keep)
    print(table(outcome))
    for finding in outcome.findings:
        print(f"BROKEN: {finding}")
    if outcome.findings:
        print(f"{len(outcome.findings)} findings; {options.again}; the logs are in {fleet.folder}")
    return int(keep)


if __name__ == "__main__":
    raise SystemExit(main())
