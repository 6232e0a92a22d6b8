"""`python -m lab.specification`: explores the protocol, and says what it has found.

`--small` takes seconds; `--sabotage NAME` breaks one step of the protocol on purpose, and tells the
shortest story of what comes of it. Exits with 1 where a guarantee is broken, or a sabotage is not
caught by the guarantee that it is about.
"""

import argparse
import gc
import multiprocessing
import sys
import time
from collections.abc import Callable

from lab.specification.core import Core
from lab.specification.explorer import System, explore
from lab.specification.rollup import Rollup

FULL: dict[str, System] = {
    "core": Core(begun=3, leads=2, losses=1, failovers=1, resends=0),
    "core, more leads": Core(begun=2, leads=3, losses=1, failovers=1, resends=0),
    "core, sent twice": Core(begun=2, leads=2, losses=0, failovers=1, resends=1),
    "rollup": Rollup(sent=2, begun=3, flushes=1, failovers=1),
}
SMALL: dict[str, System] = {
    "core, a loss": Core(begun=2, leads=2, losses=1, failovers=0, resends=0),
    "core, a fail-over": Core(begun=1, leads=2, losses=0, failovers=1, resends=1),
    "rollup, small": Rollup(sent=1, begun=2, flushes=1, failovers=1),
}
# Each with the number of the guarantee that it breaks.
NO_LOSS = {"begun": 2, "leads": 2, "losses": 0, "failovers": 0, "resends": 0}
SABOTAGES: dict[str, tuple[str, Callable[..., System], dict[str, int]]] = {
    "no-barrier": ("2", Core, NO_LOSS),
    "writers-first": ("2", Core, NO_LOSS),
    "delete-more": ("1", Core, NO_LOSS | {"begun": 3, "leads": 1}),
    "no-compare-and-set": ("3", Core, NO_LOSS),
    "checkpoint-alone": ("8", Core, NO_LOSS),
    "past-last-sent": ("11", Core, NO_LOSS),
    "no-terms": ("8", Core, NO_LOSS | {"failovers": 1}),
    "older-generation": ("8", Rollup, SMALL["rollup, small"].bounds),
    "no-heal": ("liveness", Core, {**NO_LOSS, "begun": 1, "leads": 1, "losses": 1}),
}


def main() -> None:
    """Explore, or tell what a sabotage does."""
    parser = argparse.ArgumentParser(prog="python -m lab.specification", description=__doc__)
    parser.add_argument("--small", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--sabotage", choices=SABOTAGES, help="break a step, and tell the story")
    arguments = parser.parse_args()
    if name := arguments.sabotage:
        number, kind, bounds = SABOTAGES[name]
        sys.exit(told(name, kind(name, **bounds)) != number)
    with multiprocessing.Pool(2) as pool:
        systems = SMALL if arguments.small else FULL
        sys.exit(any(pool.starmap(told, systems.items(), chunksize=1)))


def told(name: str, system: System) -> str:
    """Explore and print; returns what is broken."""
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
