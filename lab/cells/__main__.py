"""`python -m lab.cells`: two cells behind the router, broken one fault after another, under load.

Each cell (Postgres, Redis, an API, a streamer, a total, a rollup), the router and the clients have
a host of their own: a network namespace. Cells are killed, cut off and restored from a backup, and
the router is killed, in an order that the seed determines; slots move back and forth meanwhile, and
moves are killed, too. In the end every request is accounted for, over both cells.

Status 0: no ride was lost or taken twice, except for what a restore had to undo. Status 1: there is
a line for each finding, and the folder of the logs is kept. Ctrl-C ends a drill with status 130,
SIGTERM with 143; it leaves no processes, namespaces or files. SIGKILL leaves a folder of logs.
"""

from lab.arguments import Arguments
from lab.balancer import HAPROXY
from lab.cells.books import check
from lab.cells.drill import Drill
from lab.cells.outcome import table
from lab.chaos.machines import enter_own_namespace
from lab.network import lacking
from lab.place import Place, place, verdict


def main() -> int:
    parser = Arguments("cells", __doc__)
    parser.seed("--seed", "the order of faults")
    late = "seconds after which no new fault begins, once each kind has struck"
    parser.number("--seconds", 60, late)
    parser.number("--rate", 80, "requests a second, in all")
    options = parser.parse_args()
    if lacks := lacking({"haproxy": HAPROXY}):
        raise SystemExit(f"the drill needs {lacks}")
    with place("cells", Place) as at:
        enter_own_namespace()  # for the servers' disks
        drill = Drill(at.folder, options.seed, options.rate)
        at.exits.callback(drill.stop)
        print(f"seed {options.seed}", flush=True)

        def played() -> tuple[list[str], str]:
            books = drill.run(options.seconds)
            findings, figures = check(books), table(drill, books)
            return findings, figures if findings else f"{figures}\nevery request is accounted for"

        return verdict(at, played)


if __name__ == "__main__":
    raise SystemExit(main())
