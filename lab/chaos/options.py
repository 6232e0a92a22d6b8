"""The command line of `python -m lab.chaos`."""

import argparse
import random
import shlex
import sys
from dataclasses import dataclass

from demo.embedded.stream_servers import STREAM_SERVERS
from lab.chaos.faults import FAULTS
from lab.chaos.fleet import RATE
from lab.chaos.nemesis import EVERY

SECONDS = 100.0  # about two minutes including start and end
NUMBERS = {
    "seconds": "duration of the faults",
    "rate": "rides a second",
    "every": "seconds from one fault to the next, on average",
    "recovery": "seconds that the totals may take to catch up after the last fault",
}


@dataclass(frozen=True)
class Options:
    """The options of a run; see the command line."""

    seed: int
    seconds: float = SECONDS
    rate: float = RATE
    faults: tuple[str, ...] = tuple(FAULTS)
    every: float = EVERY  # seconds from one fault to the next, on average
    recovery: float = 10.0  # seconds
    stream_server: str = "valkey"

    @property
    def again(self) -> str:
        """The command that plays the same plan."""
        seed = [] if "--seed" in sys.argv else ["--seed", str(self.seed)]
        return f"python -m lab.chaos {shlex.join(seed + sys.argv[1:])}"


def arguments(description: str | None) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.chaos",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )

    add = parser.add_argument
    new = random.randrange(2**32)
    add("--seed", type=int, default=new, help="repeat an earlier plan (default: a new one)")
    for name, meaning in NUMBERS.items():
        default = getattr(Options, name)
        add(f"--{name}", type=positive, default=default, help=f"{meaning} (default: {default:g})")
    kinds = f"only these: {','.join(FAULTS)}"
    add("--faults", type=fault_kinds, default=Options.faults, help=kinds)
    server = "what holds the log: Valkey 9.1 or Redis 6.2 (default: %(default)s)"
    add("--stream-server", choices=STREAM_SERVERS, default=Options.stream_server, help=server)
    return Options(**vars(parser.parse_args()))


def positive(text: str) -> float:
    number = float(text)
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def fault_kinds(text: str) -> tuple[str, ...]:
    kinds = tuple(text.split(","))
    if unknown := set(kinds) - set(FAULTS):
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}")
    return kinds
