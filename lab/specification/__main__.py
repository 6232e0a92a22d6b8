"""`python -m lab.specification`: explores the protocol, and says what it has found.

`--small` takes seconds. `--sabotage NAME` breaks one step of the protocol, and prints the shortest
story that breaks a guarantee. The exit status is 1 where a guarantee is broken without a sabotage,
or a sabotage does not break the guarantee that it is about.
"""

import argparse
import gc
import multiprocessing
import signal
import sys
import time
from collections.abc import Callable
from textwrap import fill
from typing import NoReturn

from lab.specification.core import Core
from lab.specification.explorer import System, explore
from lab.specification.held_out import HoldingOut
from lab.specification.inbox import Inbox
from lab.specification.judge import Judge
from lab.specification.queue import Queue
from lab.specification.rollup import Rollup

# Of the rollup: how many generations, and whether a leader goes on that was superseded.
ONE_LEAD, LEADS = {"begun": 1, "superseded": 0}, {"begun": 2, "superseded": 0}
OVERLAP = {"begun": 2, "superseded": 1}
FULL: dict[str, System] = {
    "core": Core(begun=3, others=0, leads=2, losses=1, failovers=1, resends=0),
    "core, two kinds": Core(begun=3, others=1, leads=1, losses=1, failovers=0, resends=0),
    "core, more leads": Core(begun=2, others=1, leads=3, losses=1, failovers=1, resends=0),
    "core, sent twice": Core(begun=2, others=0, leads=2, losses=0, failovers=1, resends=1),
    "held out": HoldingOut(sent=2, begun=2, breaks=1, outages=1, asked=2, resets=2),
    "held out, three": HoldingOut(sent=3, begun=1, breaks=3, outages=0, asked=2, resets=1),
    "rollup": Rollup("", **LEADS, sent=2, losses=1, failovers=0, requests=0),
    "rollup, a fail-over": Rollup("", **LEADS, sent=2, losses=0, failovers=1, requests=0),
    "rollup, superseded": Rollup("", **OVERLAP, sent=1, losses=1, failovers=1, requests=0),
    "rollup, a request": Rollup("", **ONE_LEAD, sent=2, losses=1, failovers=0, requests=1),
    "inbox": Inbox(drawn=3, flushes=0, set_backs=1),
    "inbox, losses": Inbox(drawn=2, flushes=2, set_backs=1),
    "queue": Queue(takes=4, repeats=2, replays=2),
    "judge": Judge(totals=2, taken=3, alterations=1, approvals=0, parties=1),
    "judge, two alterations": Judge(totals=1, taken=3, alterations=2, approvals=0, parties=1),
    "judge, both copies": Judge(totals=1, taken=2, alterations=2, approvals=0, parties=2),
    "judge, an approval": Judge(totals=1, taken=2, alterations=2, approvals=1, parties=1),
}
SMALL: dict[str, System] = {
    "core, a loss": Core(begun=2, others=0, leads=2, losses=1, failovers=0, resends=0),
    "core, two kinds": Core(begun=2, others=1, leads=1, losses=1, failovers=0, resends=0),
    "core, a fail-over": Core(begun=1, others=0, leads=2, losses=0, failovers=1, resends=1),
    "held out, small": HoldingOut(sent=2, begun=2, breaks=1, outages=0, asked=1, resets=1),
    "held out, an outage": HoldingOut(sent=2, begun=1, breaks=1, outages=1, asked=0, resets=0),
    "held out, all": HoldingOut(sent=3, begun=1, breaks=3, outages=0, asked=1, resets=0),
    "rollup, a loss": Rollup("", **ONE_LEAD, sent=2, losses=1, failovers=0, requests=0),
    "rollup, a request and a fail-over": Rollup(
        "", **ONE_LEAD, sent=1, losses=0, failovers=1, requests=1
    ),
    "rollup, two leads": Rollup("", **OVERLAP, sent=1, losses=0, failovers=0, requests=0),
    "inbox, small": Inbox(drawn=2, flushes=1, set_backs=1),
    "queue, small": Queue(takes=3, repeats=1, replays=2),
    "judge, small": Judge(totals=2, taken=2, alterations=1, approvals=0, parties=1),
    "judge, one ride": Judge(totals=1, taken=1, alterations=2, approvals=0, parties=2),
    "judge, approval": Judge(totals=1, taken=2, alterations=1, approvals=1, parties=1),
}
INBOX, QUEUE = SMALL["inbox, small"].bounds, SMALL["queue, small"].bounds
JUDGE = SMALL["judge, small"].bounds
HELD_OUT = SMALL["held out, small"].bounds
THREE = HELD_OUT | {"sent": 3, "begun": 1, "breaks": 3, "asked": 0, "resets": 0}
ONE_TOTAL = JUDGE | {"totals": 1}
ROLLUP = SMALL["rollup, a loss"].bounds
NO_LOSS = {"begun": 2, "others": 0, "leads": 2, "losses": 0, "failovers": 0, "resends": 0}
# Each with the guarantee that it breaks, numbered as in docs/guarantees.md.
SABOTAGES: dict[str, tuple[str, Callable[..., System], dict[str, int]]] = {
    "no-barrier": ("2", Core, NO_LOSS),
    "writers-first": ("2", Core, NO_LOSS),
    "one-table": ("2", Core, NO_LOSS | {"others": 1}),
    "delete-more": ("1", Core, NO_LOSS | {"begun": 3, "leads": 1}),
    "no-compare-and-set": ("3", Core, NO_LOSS),
    "checkpoint-alone": ("8", Core, NO_LOSS),
    "past-last-sent": ("11", Core, NO_LOSS),
    "no-terms": ("8", Core, NO_LOSS | {"failovers": 1}),
    "reset-leaves-rows": ("8", HoldingOut, HELD_OUT),
    "recount-leaves-rows": ("8", HoldingOut, HELD_OUT),
    "retry-leaves-row": ("8", HoldingOut, HELD_OUT),
    "retry-looks-once": ("4", HoldingOut, HELD_OUT),
    "row-alone": ("8", HoldingOut, HELD_OUT),
    "position-alone": ("8", HoldingOut, HELD_OUT),
    "outage-held-out": ("13, refused", HoldingOut, HELD_OUT | {"outages": 1}),
    "holds-out-all": ("13, a whole log", HoldingOut, THREE),
    "never-halved": ("liveness", HoldingOut, HELD_OUT),
    "older-generation": ("8", Rollup, ROLLUP | OVERLAP),
    "checkpoint-not-set-back": ("8", Rollup, ROLLUP | OVERLAP),
    "commits-new-marks": ("8", Rollup, ROLLUP),
    "reserved-anew": ("8", Rollup, ROLLUP),
    "producer-set-alone": ("8", Rollup, ROLLUP),
    "marked-upto-last": ("8", Rollup, ROLLUP),
    "writes-not-counted": ("8", Rollup, ROLLUP),
    "sizes-not-compared": ("8", Rollup, ROLLUP),
    "no-heal": ("liveness", Core, {**NO_LOSS, "begun": 1, "leads": 1, "losses": 1}),
    "acknowledged-first": ("15, inbox", Inbox, INBOX),
    "waits-for-last-sent": ("15, inbox", Inbox, INBOX),
    "sweep-regardless": ("15, inbox", Inbox, INBOX),
    "complete-regardless": ("15, complete_to", Inbox, INBOX),
    "outcomes-alone": ("15, complete_to", Inbox, INBOX),
    "unsent-rides": ("11", Queue, QUEUE),
    "late-refusal": ("15, outcome", Queue, QUEUE | {"replays": 0}),
    "late-delivery": ("15, outcome", Queue, QUEUE),
    "replay-reopens": ("15, outcome", Queue, QUEUE),
    "replay-at-once": ("15, one at a time", Queue, QUEUE),
    "number-as-lease": ("15, dead letters", Queue, QUEUE | {"repeats": 0}),
    "written-afterwards": ("15, attempts", Queue, QUEUE),
    "no-deadline": ("15, one at a time", Queue, QUEUE),
    "never-given-up": ("liveness", Queue, QUEUE),
    "postgres-alone": ("12", Judge, JUDGE),
    "no-second-witness": ("12", Judge, ONE_TOTAL),
    "witness-behind": ("12", Judge, JUDGE),
    "copy-as-witness": ("12", Judge, ONE_TOTAL),
    "count-as-witness": ("12", Judge, ONE_TOTAL),
    "silent-ledger": ("12", Judge, ONE_TOTAL),
    "ledger-ignored": ("12", Judge, ONE_TOTAL | {"alterations": 2, "parties": 2}),
    "altered-ledger": ("12", Judge, ONE_TOTAL | {"taken": 3}),
    "records-uncounted": ("12", Judge, JUDGE),
    "stale-approval": ("12", Judge, ONE_TOTAL | {"taken": 1, "alterations": 2, "approvals": 1}),
    "sums-only": ("liveness", Judge, ONE_TOTAL),
}


class Parser(argparse.ArgumentParser):
    """Refuses in one line, as the services' do, of which nothing may be imported here."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; --help explains\n")


def main() -> None:
    formatter = argparse.RawTextHelpFormatter
    parser = Parser("python -m lab.specification", description=__doc__, formatter_class=formatter)
    names = f"break a step, and tell the story: {', '.join(SABOTAGES)}"
    names = fill(names, 76, break_on_hyphens=False)
    parser.add_argument("--small", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--sabotage", metavar="NAME", help=names)
    arguments = parser.parse_args()
    # make starts it with Ctrl-C ignored (see demo/foreground), and the pool's processes inherit it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if (name := arguments.sabotage) is not None:
        if name not in SABOTAGES:
            parser.error(f"argument --sabotage: unknown: {name}")
        number, kind, bounds = SABOTAGES[name]
        sys.exit(told(name, kind(name, **bounds)) != number)
    with multiprocessing.Pool(2) as pool:
        systems = SMALL if arguments.small else FULL
        sys.exit(any(pool.starmap(told, systems.items(), chunksize=1)))


def told(name: str, system: System) -> str:
    gc.disable()  # every state is kept
    began = time.monotonic()
    states, transitions, depth, broken, story = explore(system)
    print(
        f"{name}: {states:,} states, {transitions.total():,} transitions,"
        f" {depth} deep, {time.monotonic() - began:.1f} s:",
        f"guarantee {broken} does not hold after" if broken else "all is right, and comes to rest",
        *(f"\n  {number}. {sentence}" for number, sentence in enumerate(story, 1)),
        flush=True,
    )
    return broken


if __name__ == "__main__":
    main()
