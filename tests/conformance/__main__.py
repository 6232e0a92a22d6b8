"""`python -m tests.conformance [MODULE:CLASS]`: tries what an ordered outbox must survive, on one.

Prints the verdict on each demand. The exit status is 0 if all hold, else 1. Without an argument it
judges ours and the naive ones beside it, and writes the table into unified_log/README.md.
"""

import argparse
from importlib import import_module

from lab.blocks import write
from rocket_rides.settings import PROJECT
from tests.conformance.known import IMPLEMENTATIONS, KNOWN, PAGE, as_table, title
from tests.conformance.outbox import Outbox
from tests.conformance.servers import servers
from tests.conformance.trial import Verdict, tried


def named(path: str) -> type[Outbox]:
    """The class that an argument names."""
    module, _, name = path.partition(":")
    try:
        found: type[Outbox] = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as reason:
        raise argparse.ArgumentTypeError(str(reason)) from None
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        "python -m tests.conformance",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("outbox", nargs="?", type=named, metavar="MODULE:CLASS")
    asked = parser.parse_args().outbox
    seen = {}
    with servers() as private:
        for demand in KNOWN:
            outboxes = [asked] if asked else IMPLEMENTATIONS.values()
            seen[demand] = [tried(outbox, demand, private) for outbox in outboxes]
            told = ", ".join(verdict.value for verdict in seen[demand])
            print(f"{title(demand)}: {told}", flush=True)
    if not asked:
        write(PROJECT / PAGE, {"conformance": lambda: as_table(seen)})
    return int(any(first is not Verdict.HOLDS for first, *_ in seen.values()))


if __name__ == "__main__":
    raise SystemExit(main())
