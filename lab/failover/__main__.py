"""`python -m lab.failover`: fail-overs that Patroni and Sentinel decide, under a fleet's load.

Three nodes of Postgres with Patroni and etcd, three of Redis with Sentinel: each node is a network
namespace. Each primary in turn is switched over, killed, frozen and cut off from the network, its
manager with it; then it returns. It takes five minutes. In the end every ride is accounted for.

Status 0: no acknowledged ride was lost or counted twice, and the fleet went on by itself during
each fault. Status 1: there is a line for each finding, and the folder of the logs is kept. Ctrl-C
ends a drill with status 130, SIGTERM with 143; it leaves no processes, namespaces or files.
"""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from lab.arguments import Arguments
from lab.balancer import HAPROXY
from lab.books import played
from lab.chaos.machines import Disk, enter_own_namespace
from lab.failover.drill import LIMIT, NEVER, Drill, Seen
from lab.network import lacking, switch
from lab.place import place, verdict
from lab.progress import table
from lab.stage import Stage

POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
PROGRAMS = {  # by the packages that they come in
    "postgresql": POSTGRES,
    "haproxy": HAPROXY,
    "patroni": shutil.which("patroni"),
    "etcd-server": shutil.which("etcd"),
    "redis-server": shutil.which("redis-server"),
    "redis-sentinel": shutil.which("redis-sentinel"),
}


def main() -> int:
    parser = Arguments("failover", __doc__)
    parser.number("--rate", 30, "rides a second")
    options = parser.parse_args()
    if lacks := lacking(PROGRAMS):
        raise SystemExit(f"the drill needs {lacks}")
    with place("failover", Stage) as stage:
        switch()
        enter_own_namespace()  # for the servers' disk
        disk = Disk(stage.folder / "servers")
        stage.exits.callback(disk.unmount)
        disk.mount()
        drill = Drill(stage, disk.folder, POSTGRES[-1].parent, options.rate)
        seen = drill.seen
        return verdict(stage, lambda: played(drill.run, lambda: judged(seen), lambda: shown(seen)))


def judged(seen: Iterable[Seen]) -> Iterator[str]:
    """Where the programs, or the fleet, did not go on by themselves."""
    for fault, elected, refused, stood in seen:
        if elected == NEVER:
            yield f"{fault}: nobody was elected within {LIMIT:.0f} s"
        elif max(refused, stood) > LIMIT:
            yield f"{fault}: no POST was taken for {refused:.0f} s, totals stood for {stood:.0f} s"


def shown(seen: Iterable[Seen]) -> str:
    header = ("fault of the primary", "another elected after", "no POST for", "totals stood for")
    rows = ((*told, f"{refused:.1f} s", f"{stood:.1f} s") for *told, refused, stood in seen)
    return table(header, rows)


if __name__ == "__main__":
    raise SystemExit(main())
