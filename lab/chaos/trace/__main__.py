"""`python -m lab.chaos.trace FILE`: replays a recording through the specification.

Prints how often each kind of step was met; or the first step that is refused, with ten before it
and ten after it, and then the status is 1.
"""

import argparse
from pathlib import Path

import msgspec

from lab.chaos.trace.judge import judge, lines
from lab.chaos.trace.recording import read


def main() -> int:
    """Judge FILE; returns 1 when a step is refused, and 2 where nothing whole is recorded."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.chaos.trace",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    file = parser.parse_args().file
    try:
        verdict = judge(lambda: read(file))
    except (OSError, EOFError, msgspec.MsgspecError) as error:
        print(f"{file} is not a whole recording of this version: {error}")
        return 2
    if not verdict.steps:
        print(f"{file} has no steps")
        return 2
    for line in lines(verdict):
        print(line)
    return int(bool(verdict.refused))


if __name__ == "__main__":
    raise SystemExit(main())
