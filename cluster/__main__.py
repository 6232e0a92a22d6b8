"""`python -m cluster`: run the nightly job on a Spark cluster, and break the cluster meanwhile.

The hosts are on this machine, and broken as hosts break. Amid the extract, one worker's host loses
its power, and another one is cut off from Postgres until it has noticed; both come back. Amid the
reduce, a host loses its power again. The job must end all the same, with the same result as in one
process (`local[*]`), to the millimetre, and as Postgres' own sum; the warehouse that it leaves
behind is checked, block by block. And no machine may try a port that docs/cluster.md does not name.

The exit status is 0 if all of that holds, 1 if it does not, 2 if the hosts can't be made: it takes
root, on Linux, with ip and nft.
"""

import argparse
import signal
import sys
import time

from analytics.prerequisites import require_java, require_packages
from cluster import rides
from cluster.faults import broken
from cluster.network import NoHosts
from cluster.spark import IN_ONE_PROCESS, Cluster, cluster
from cluster.waiting import Failed
from rocket_rides import database
from rocket_rides.errors import Unavailable

RIDES = 10_000_000
LEAST = 500_000  # or the job is over before anything can be broken
# Of the job's result: what it says of the rides, not of the run.
COMPARED = ("last_ride_id", "total", "days", "consumers", "mismatches")


def prove(on: Cluster, count: int) -> list[str]:
    """Run the job there, and in one process; returns what is wrong. Raises Failed."""
    with database.connect(on.url, "cluster") as connection:
        on.say(f"{count:,} rides")
        rides.insert(connection, count)
        true = rides.total(connection)
    found = broken(on)
    on.say("now in one process, which also checks the warehouse that is there")
    alone = on.result("alone", on.reconcile("alone", "--check", "--full", **IN_ONE_PROCESS))
    wrong = [f"{name} differs" for name in COMPARED if _facts(found, name) != _facts(alone, name)]
    if found["total"] != true:
        wrong.append(f"Postgres adds up {true}, the job {found['total']}")
    if [each["wrong"] for each in found["consumers"]].count(True) != 2:
        wrong.append(f"not the two wrong consumers are called wrong: {found['consumers']}")
    if not alone["verified"]:
        wrong.append("the warehouse was not verified")
    if refused := on.refused():
        wrong.append(f"{refused} connections went to ports that docs/cluster.md does not name")
    on.say(f"the total is {found['total']['distance']:,} m, over {found['total']['rides']:,} rides")
    return wrong


def _facts(result: dict[str, object], name: str) -> object:
    """A part of a result; --check asks for no resets."""
    part = result[name]
    if name != "consumers" or not isinstance(part, list):
        return part
    return [{**consumer, "reset": None} for consumer in part]


def main() -> None:
    """Build the cluster, break it, and tell what came of it."""
    parser = argparse.ArgumentParser(prog="python -m cluster", description=__doc__)
    parser.add_argument("--rides", type=int, default=RIDES, help=f"by default {RIDES:,}")
    arguments = parser.parse_args()
    if arguments.rides < LEAST:
        parser.error(f"--rides: at least {LEAST:,}, or the job is over before anything breaks")
    # Like Ctrl-C: the machines end first.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {line}", flush=True)

    try:
        require_packages()
        require_java()
        say("six machines, and a cluster on them")
        with cluster(say) as running:
            wrong = prove(running, arguments.rides)
    except (NoHosts, Unavailable) as reason:
        print(f"no cluster: {reason}", file=sys.stderr)
        raise SystemExit(2) from None
    except Failed as reason:
        wrong = [str(reason)]
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    print("\n".join(wrong) or "The same result, to the millimetre.")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
