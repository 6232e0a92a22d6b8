"""`python -m lab.chaos`: a whole fleet, a nemesis that breaks it at random, and the proof.

It starts its own fleet on private servers: Postgres, Redis and its replica, an API, two streamers,
three totals, two rollups and two workers that deliver receipts, with 10 % double sends and consumer
crashes throughout. Clients post rides and retry until they are answered; some stop half-way.
Meanwhile a nemesis breaks processes, servers, connections, the network, the log and the receiver of
receipts, fills memory and disks, sets clocks, lets strangers write to the log, fails over, and
restores Postgres from backups, all as the seed determines. Where there is Spark, the nightly job
runs again and again, is killed, and has to find what the nemesis has made wrong. Then every fault
is undone, the fleet settles, and every ride is checked.

Status 0 if nothing is lost, double, out of order or otherwise wrong, except for what a restore had
to undo. Status 1 if something is: there is a line for each finding, and the folder with all logs is
kept. Ctrl-C ends it, with status 130, and leaves no processes or files behind.

The seed decides which faults come, when, and on what. What state they meet depends on the machine.
"""

import argparse
import gc
import json
import random
import signal
import sys
from pathlib import Path

from tqdm import tqdm

from demo.embedded import stock
from demo.embedded.failures import NeverStarts, ServerFailed
from demo.embedded.stream_servers import STREAM_SERVERS
from lab.chaos.disks import enter_own_namespace
from lab.chaos.faults import FAULTS
from lab.chaos.fleet import ORDINARY_RATE, Fleet
from lab.chaos.judge import lines
from lab.chaos.nemesis import EVERY
from lab.chaos.nights import REST
from lab.chaos.play import Options, Play
from lab.chaos.recovery import LONGEST
from lab.chaos.table import figures, table

SECONDS = 100.0  # about two minutes including start and end
FILL_DISKS = {"disk-full", "warehouse-full"}
# Slow enough that most runs of the nightly job get to their end.
NIGHTS = {"seconds": 900.0, "rate": 20.0, "every": 8.0}
# A million rides under a thousand faults. None of its nightly runs gets to its end, and each reads
# all rides anew meanwhile: so there are fewer of them.
MILLION = {
    "seconds": 2340.0,
    "rate": 800.0,
    "every": 1.7,
    "rides": 1_000_000,
    "strikes": 1000,
    "rest": 30.0,
}


def main() -> int:
    """Return 0 if every ride counted once, else 1."""
    options = arguments()
    print(f"seed {options.seed}", flush=True)
    # Explicitly, because a shell makes the programs that it starts in the background ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Like Ctrl-C: everything that was started ends first.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        stock.use() if options.stock else stock.require()
    except NeverStarts as reason:
        raise SystemExit(str(reason)) from None
    gc.disable()  # all is kept until the end, and to look through it would hold up the proxies
    fleet = Fleet(
        STREAM_SERVERS[options.stream_server],
        waits=options.waits,
        disks=bool(FILL_DISKS & set(options.kinds)) and enter_own_namespace(),
        clocks="clock-jump" in options.kinds,
        rate=options.rate,
        recorded=bool(options.record),
        keeps_log=options.keeps_log,
    )
    keep = True
    try:
        fleet.start()
        with tqdm(
            total=options.seconds,
            unit="s",
            disable=None,  # only on a terminal
            bar_format="{l_bar}{bar}| {n:.0f}/{total:.0f} s, {remaining} left, {postfix}",
        ) as bar:
            outcome = Play(fleet, options).run(bar)
        keep = bool(outcome.findings)
    except (ServerFailed, TimeoutError) as reason:
        print(f"{reason}; the logs are in {fleet.folder}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, SystemExit) as end:
        keep = False
        return 130 if isinstance(end, KeyboardInterrupt) else 128 + signal.SIGTERM
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        fleet.stop(keep=keep)
    print(table(rows := figures(outcome)))
    for line in lines(outcome.verdict) if outcome.verdict else ():
        print(line)
    if options.json:
        said = {"seed": options.seed, "findings": outcome.findings, "figures": rows}
        options.json.write_text(json.dumps(said, indent=2) + "\n")
    for finding in outcome.findings:
        print(f"BROKEN: {finding}")
    if outcome.findings:
        print(f"{len(outcome.findings)} findings; {again(options)}; the logs are in {fleet.folder}")
    return int(keep)


def again(options: Options) -> str:
    """The command that plays the same plan."""
    words = [f"python -m lab.chaos --seed {options.seed} --stream-server {options.stream_server}"]
    words += [f"--seconds {options.seconds:g} --rate {options.rate:g} --every {options.every:g}"]
    if options.kinds != tuple(FAULTS):
        words.append(f"--faults {','.join(options.kinds)}")
    if options.rides:
        words.append(f"--rides {options.rides}")
    if options.strikes:
        words.append(f"--strikes {options.strikes}")
    if options.waits:
        words.append("--wait")
    if options.stock:
        words.append("--servers stock")
    if options.rest != REST:
        words.append(f"--rest {options.rest:g}")
    return " ".join(words)


def arguments() -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.chaos",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--seed", type=int, help="repeat the plan of an earlier run (default: a new one)")
    add(
        "--seconds",
        type=positive,
        default=SECONDS,
        help="duration of the faults (default: %(default).0f)",
    )
    add(
        "--rate",
        type=positive,
        default=ORDINARY_RATE,
        help="rides a second (default: %(default).0f)",
    )
    add(
        "--every",
        type=positive,
        default=EVERY,
        metavar="SECONDS",
        help="from one fault to the next, on average (default: %(default).1f)",
    )
    add("--rides", type=whole, metavar="N", help="end after N rides, if that comes first")
    add("--strikes", type=whole, metavar="N", help="the same after N faults; with both, after both")
    add(
        "--million",
        action="store_true",
        help="a million rides under a thousand faults",
    )
    add(
        "--nights",
        action="store_true",
        help="fifteen minutes in which most runs of the nightly job get to their end",
    )
    add(
        "--recovery",
        type=positive,
        default=LONGEST,
        metavar="SECONDS",
        help="that a recovery may take (default: %(default).0f)",
    )
    add(
        "--rest",
        type=positive,
        default=REST,
        metavar="SECONDS",
        help="from the end of a run of the nightly job to the next (default: %(default).0f)",
    )
    add("--json", type=Path, metavar="FILE", help="write the figures and findings to it")
    add(
        "--faults",
        type=fault_kinds,
        default=tuple(FAULTS),
        metavar="KIND,...",
        help=f"only these: {', '.join(FAULTS)}",
    )
    add(
        "--stream-server",
        choices=STREAM_SERVERS,
        default="valkey",
        help="what holds the log: Valkey 9.1 or Redis 6.2 (default: %(default)s)",
    )
    add(
        "--wait",
        action="store_true",
        help="the streamer waits until the replica of Redis has each batch (LOG_REPLICAS=1)",
    )
    add(
        "--record",
        type=Path,
        metavar="FILE",
        help="also record what the processes commit, and replay it through the specification",
    )
    add(
        "--servers",
        choices=["embedded", "stock"],
        default="embedded",
        help="stock: this machine's own, or those of POSTGRES_PROGRAMS and REDIS_PROGRAMS",
    )
    given = parser.parse_args()
    if given.million or given.nights:
        parser.set_defaults(**(MILLION if given.million else NIGHTS))
        given = parser.parse_args()
    return Options(
        random.randrange(2**32) if given.seed is None else given.seed,
        given.seconds,
        given.rate,
        given.faults,
        given.rides,
        given.stream_server,
        given.wait,
        given.record,
        given.every,
        given.strikes,
        given.recovery,
        given.json,
        given.rest,
        given.servers == "stock",
    )


def positive(text: str) -> float:
    number = float(text)
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def whole(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive whole number")
    return number


def fault_kinds(text: str) -> tuple[str, ...]:
    kinds = tuple(text.split(","))
    if unknown := set(kinds) - set(FAULTS):
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}")
    return kinds


if __name__ == "__main__":
    raise SystemExit(main())
