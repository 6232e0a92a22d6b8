"""What a drill prints: its steps as they go, and a table in the end, as Markdown has it."""

import sys
import time
from collections.abc import Iterable, Sequence


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Progress:
    """Prints steps for a person, each with the seconds since the start."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def say(self, line: str) -> None:
        say(f"{time.monotonic() - self._began:6.1f} s  {line}")


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns of equal width; a page can show them as they are."""
    lines = [[*header], *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    padded = (map(str.ljust, line, widths) for line in lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in padded)
