"""`python -m lab.chaos.trace FILE`: replays a recording through the specification.

Prints how often each kind of step was met; or the first step that is refused, with ten before it
and ten after it, and then the status is 1. A recording in which an INTERESTING step never came is
thin: that is said, and the status is 2, as it is if the recording is cut short.
"""

import argparse
from pathlib import Path

import msgspec

from lab.chaos.trace.judge import judge, lines
from lab.chaos.trace.recording import Limits, read


def main() -> int:
    """Judge FILE; returns 1 when a step is refused, and 2 when not all was met, or told."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.chaos.trace",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    file = parser.parse_args().file
    try:
        if not isinstance(next(read(file), None), Limits):
            raise msgspec.ValidationError("it does not begin as one does")
        verdict = judge(lambda: read(file))
    except (OSError, msgspec.MsgspecError) as error:
        print(f"{file} is not a recording of this version: {error}")
        return 2
    for line in lines(verdict):
        print(line)
    return verdict.status


if __name__ == "__main__":
    raise SystemExit(main())
