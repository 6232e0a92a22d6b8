"""`python -m specification`: explores the protocol, and says what it has found.

`--small` takes seconds; `--sabotage NAME` breaks one step of the protocol on purpose, and tells the
shortest story of what comes of it. Exits with 1 where a guarantee is broken, or a sabotage is not
caught by the guarantee that it is about.
"""

import argparse
import multiprocessing
import sys
import time
from collections.abc import Callable

from specification.core import Bounds, Core
from specification.explorer import Result, System, explore
from specification.group import Group
from specification.reset import Reset
from specification.rollup import Rollup

TELL_EVERY = 10.0  # seconds

FULL: dict[str, Callable[[], System]] = {
    "core": lambda: Core(Bounds(writers=3, leads=2, consumers=1)),
    "core, two consumers": lambda: Core(Bounds(writers=3, leads=2, consumers=2, failovers=0)),
    "core, more leads": lambda: Core(Bounds(writers=2, leads=3, consumers=1)),
    "core, sent twice": lambda: Core(Bounds(writers=2, leads=2, consumers=2, losses=0, resends=1)),
    "reset": lambda: Reset(rides=4, runs=3),
    "rollup": lambda: Rollup(rides=2, generations=3),
    "receipts": lambda: Group(rides=1, entries=3),
}
# All of the core at once: minutes more, and gigabytes.
DEEP: dict[str, Callable[[], System]] = {
    "core, all at once": lambda: Core(Bounds(writers=3, leads=2, consumers=2)),
}
SMALL: dict[str, Callable[[], System]] = {
    "core, a loss": lambda: Core(Bounds(writers=2, leads=2, consumers=1, failovers=0)),
    "core, a fail-over": lambda: Core(Bounds(writers=1, leads=2, consumers=2, losses=0, resends=1)),
    "reset, small": lambda: Reset(rides=2, runs=2),
    "rollup, small": lambda: Rollup(rides=1, generations=2),
    "receipts, small": lambda: Group(rides=1, entries=2),
}
NO_LOSS = Bounds(writers=2, leads=2, consumers=1, losses=0, failovers=0)
# Each with the number of the guarantee that it breaks.
SABOTAGES: dict[str, tuple[str, Callable[[str], System]]] = {
    "no-barrier": ("2", lambda name: Core(NO_LOSS, name)),
    "writers-first": ("2", lambda name: Core(NO_LOSS, name)),
    "delete-more": ("1", lambda name: Core(Bounds(2, 1, 1, 0, 0, batch=1), name)),
    "no-compare-and-set": ("3", lambda name: Core(NO_LOSS, name)),
    "checkpoint-alone": ("4", lambda name: Core(NO_LOSS, name)),
    "past-last-sent": ("11", lambda name: Core(NO_LOSS, name)),
    "no-terms": ("10", lambda name: Core(Bounds(2, 2, 1, losses=0), name)),
    "older-generation": ("8", lambda name: Rollup(rides=1, generations=2, broken=name)),
}


def main() -> None:
    """Explore, or tell what a sabotage does."""
    arguments = parse()
    if arguments.sabotage:
        number, system = SABOTAGES[arguments.sabotage]
        sys.exit(told(arguments.sabotage, system(arguments.sabotage)) != number)
    systems = SMALL if arguments.small else DEEP if arguments.deep else FULL
    print(f"exploring {', '.join(systems)}", file=sys.stderr)
    with multiprocessing.Pool(2) as pool:
        sys.exit(any(list(pool.imap_unordered(explored, systems, chunksize=1))))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m specification", description=__doc__)
    parser.add_argument("--small", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--deep", action="store_true", help="both consumers beside all faults")
    parser.add_argument("--sabotage", choices=SABOTAGES, help="break a step, and tell the story")
    return parser.parse_args()


def explored(name: str) -> str:
    return told(name, (FULL | DEEP | SMALL)[name]())


def told(name: str, system: System) -> str:
    """Explore and print; returns what is broken."""
    due = time.monotonic() + TELL_EVERY

    def tell(states: int, depth: int) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due += TELL_EVERY
            print(f"{name}: {states:,} states, {depth} deep", file=sys.stderr, flush=True)

    result = explore(system, tell)
    print(report(name, system, result), flush=True)
    return result.broken


def report(name: str, system: System, result: Result) -> str:
    measured = (
        f"{name}: {result.states:,} states, {result.transitions.total():,} transitions,"
        f" {result.depth} deep, {result.seconds:.1f} s"
    )
    if not result.broken:
        return f"{measured}: every invariant holds, and all comes to rest complete"
    steps = "\n".join(f"  {number}. {told}" for number, told in enumerate(result.story, 1))
    broken = system.invariants.get(result.broken)
    why = f"guarantee {result.broken}: {broken.__doc__}" if broken else "no complete end from here"
    return (
        f"{measured}; {len(result.story)} lines of story:\n{steps}\nThen it no longer holds, {why}"
    )


if __name__ == "__main__":
    main()
