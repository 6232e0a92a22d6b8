"""`python -m lab.failover`: fail-overs that Patroni and Sentinel decide, under a fleet's load.

Three nodes of Postgres with Patroni and etcd, three of Redis with Sentinel: each node is a network
namespace. Each primary in turn is switched over, killed, frozen and cut off from the network, its
manager with it; then it returns. It takes some ten minutes. In the end every ride is accounted for.

Status 0: no acknowledged ride was lost or counted twice, and the fleet went on by itself during
each fault. Status 1: there is a line for each finding, and the folder of the logs is kept. Ctrl-C
ends a drill with status 130, SIGTERM with 143; it leaves no processes, namespaces or files.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import psycopg
import redis

from demo.embedded.failures import NeverStarts, ServerFailed
from lab.arguments import positive
from lab.chaos.books.clients import double, lost
from lab.chaos.books.judge import check
from lab.chaos.evidence import Evidence
from lab.chaos.machines import Disk, enter_own_namespace
from lab.failover.drill import FAULTS, LIMIT, Drill, Seen
from lab.haproxy import HAPROXY
from lab.network import IP, switch
from lab.progress import table
from lab.stage import stage
from unified_log.errors import Unavailable
from unified_log.process import Parser

PROGRAMS = {  # and the packages that Debian has them in
    "patroni": "patroni",
    "etcd": "etcd-server",
    "redis-server": "redis-server",
    "redis-sentinel": "redis-sentinel",
    "unshare": "util-linux",
    "setpriv": "util-linux",
}
POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))


def main() -> int:
    """Return 0 if every acknowledged ride counted once and the fleet always went on, else 1."""
    options = arguments()
    if lacks := missing():
        raise SystemExit(f"the drill needs {lacks}")
    try:
        with stage("failover") as scene:
            enter_own_namespace()  # for the servers' disks
            switch()
            disk = Disk(scene.folder / "servers")
            disk.mount()
            scene.exits.callback(disk.unmount)
            drill = Drill(scene, disk.folder, POSTGRES[-1].parent, options.rate)
            drill.start()
            seen = [
                drill.play(cluster, fault)
                for cluster in drill.clusters
                for fault in FAULTS
                if options.only in f"{cluster.name}: {fault}"
            ]
            evidence = drill.books()
            findings = [*judged(seen), *check(evidence)]
            scene.keep = bool(findings)
    except (ServerFailed, TimeoutError, Unavailable, psycopg.Error, redis.RedisError) as reason:
        print(f"{reason}; the logs are in {scene.folder}", file=sys.stderr)
        return 1
    print(shown(seen, evidence))
    for finding in findings:
        print(f"BROKEN: {finding}")
    if findings:
        print(f"{len(findings)} findings; the logs are in {scene.folder}")
    return int(bool(findings))


def judged(seen: Iterable[Seen]) -> Iterator[str]:
    """Where the programs, or the fleet, did not go on by themselves."""
    for each in seen:
        if each.elected is None:
            yield f"{each.fault}: nobody was elected within {LIMIT:.0f} s"
        elif not each.went_on:
            yield f"{each.fault}: rides were not taken and counted within {LIMIT:.0f} s after that"


def shown(seen: Iterable[Seen], evidence: Evidence) -> str:
    """What came of each fault, and of all rides."""
    header = (
        "fault",
        "another was elected after",
        "no POST was taken for",
        "totals stood still for",
    )
    rows = (
        (
            each.fault,
            "never"
            if each.elected is None
            else f"{each.elected:.1f} s" + ", itself again" * each.again,
            f"{each.refused:.1f} s",
            f"{each.stood:.1f} s",
        )
        for each in seen
    )
    acknowledged = sum(bool(ask.answers) for ask in evidence.asks)
    books = f"{acknowledged:,} rides acknowledged: {len(lost(evidence))} lost, {len(double(evidence))} double"
    return f"{table(header, rows)}\n\n{books}"


def missing() -> str:
    """What this machine lacks; empty if nothing."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "root, on Linux: it makes network namespaces"
    lacks = {package for program, package in PROGRAMS.items() if not shutil.which(program)}
    lacks |= {"postgresql"} if not POSTGRES else set()
    lacks |= {"haproxy"} if HAPROXY is None else set()
    lacks |= {"iproute2"} if IP is None else set()
    return f"`apt install {' '.join(sorted(lacks))}`" if lacks else ""


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = Parser("python -m lab.failover", __doc__)
    add = parser.add_argument
    add("--rate", type=positive, default=30, help="rides a second (default: %(default)g)")
    only = 'only the faults with this in their name, such as "Redis: frozen"'
    add("--only", default="", metavar="WORD", help=only)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
