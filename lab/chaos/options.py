"""The command line of `python -m lab.chaos`, and how to play the same plan again."""

import argparse
import random
from dataclasses import dataclass
from pathlib import Path

from demo.embedded.stream_servers import STREAM_SERVERS
from lab.chaos.faults import FAULTS
from lab.chaos.fleet import ORDINARY_RATE
from lab.chaos.nemesis import EVERY
from lab.chaos.nights import REST
from lab.chaos.recovery import LONGEST

SECONDS = 100.0  # about two minutes including start and end
# Slow enough that most runs of the nightly job get to their end.
NIGHTS = {"seconds": 900.0, "rate": 20.0, "every": 8.0}
# A million rides under a thousand faults. None of its nightly runs gets to its end, and each reads
# all rides anew meanwhile: so there are fewer of them. To record it would slow the fleet down.
MILLION = {
    "seconds": 2340.0,
    "rate": 800.0,
    "every": 1.7,
    "rides": 1_000_000,
    "strikes": 1000,
    "rest": 30.0,
    "trace": False,
}
# After these a consumer may read entries again, or count entries that the onlooker did not see.
LOSE_ENTRIES = {
    "redis-cut",
    "redis-flush",
    "redis-full",
    "redis-full-long",
    "redis-failover",
    "redis-split",
}


@dataclass(frozen=True)
class Options:
    """The options of a run; see the command line."""

    seed: int
    seconds: float
    rate: float
    faults: tuple[str, ...]
    rides: int | None = None
    stream_server: str = "valkey"
    wait: bool = False
    trace: bool = True
    record: Path | None = None
    every: float = EVERY  # seconds from one fault to the next, on average
    strikes: int | None = None
    recovery: float = LONGEST  # seconds
    json: Path | None = None
    rest: float = REST  # seconds from the end of a nightly run to the next
    servers: str = "embedded"

    @property
    def keeps_log(self) -> bool:
        """Whether every reader can read every entry, whatever fails."""
        harmless = {"redis-failover"} if self.wait else set()
        return not (LOSE_ENTRIES - harmless) & set(self.faults)

    @property
    def again(self) -> str:
        """The command that plays the same plan."""
        words = [f"python -m lab.chaos --seed {self.seed}"]
        for name in (
            *("stream_server", "seconds", "rate", "every"),
            *("rides", "strikes", "rest", "recovery"),
        ):
            if value := getattr(self, name):
                said = f"{value:g}" if isinstance(value, float) else value
                words.append(f"--{name.replace('_', '-')} {said}")
        if self.faults != tuple(FAULTS):
            words.append(f"--faults {','.join(self.faults)}")
        words += ["--wait"] * self.wait + ["--no-trace"] * (not self.trace)
        words += ["--servers stock"] * (self.servers == "stock")
        return " ".join(words)


def arguments(description: str | None) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.chaos",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )

    def add(name: str, help_: str, **others: object) -> None:
        parser.add_argument(f"--{name}", help=help_, **others)  # type: ignore[arg-type]

    add(
        "seed", "repeat the plan of an earlier run (default: a new one)", type=int,
        default=random.randrange(2**32),
    )  # fmt: skip
    add("seconds", "duration of the faults (default: %(default)g)", type=positive, default=SECONDS)
    add("rate", "rides a second (default: %(default)g)", type=positive, default=ORDINARY_RATE)
    add(
        "every",
        "seconds from one fault to the next, on average (default: %(default)g)",
        type=positive,
        default=EVERY,
    )
    add("rides", "end after so many rides, if that comes first", type=whole)
    add("strikes", "the same after so many faults; with both, after both", type=whole)
    add("million", "a million rides under a thousand faults", action="store_true")
    add(
        "nights",
        "fifteen minutes in which most runs of the nightly job get to their end",
        action="store_true",
    )
    add(
        "recovery",
        "seconds that a recovery may take (default: %(default)g)",
        type=positive,
        default=LONGEST,
    )
    add(
        "rest",
        "seconds from the end of a run of the nightly job to the next (default: %(default)g)",
        type=positive,
        default=REST,
    )
    add("json", "write the figures and findings to this file", type=Path)
    add("faults", f"only these: {','.join(FAULTS)}", type=fault_kinds, default=tuple(FAULTS))
    add(
        "stream-server",
        "what holds the log: Valkey 9.1 or Redis 6.2 (default: %(default)s)",
        choices=STREAM_SERVERS,
        default="valkey",
    )
    add(
        "wait",
        "the streamer waits until the replica of Redis has each batch (LOG_REPLICAS=1)",
        action="store_true",
    )
    add("record", "keep the trace of what was committed in this file", type=Path)
    add(
        "trace",
        "record what is committed, and replay it through the specification (default)",
        action=argparse.BooleanOptionalAction,
        default=True,
    )
    add(
        "servers",
        "stock: this machine's own, or those of POSTGRES_PROGRAMS and REDIS_PROGRAMS",
        choices=["embedded", "stock"],
        default="embedded",
    )
    given = vars(parser.parse_args())
    if given["million"] or given["nights"]:
        parser.set_defaults(**(MILLION if given["million"] else NIGHTS))
        given = vars(parser.parse_args())
    return Options(**{name: given[name] for name in Options.__dataclass_fields__})


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
