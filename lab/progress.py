"""What a drill prints: its steps as they go, and a table in the end, as Markdown has it."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def progress() -> Callable[[str], None]:
    """Says steps, each with the seconds since now."""
    began = time.monotonic()
    return lambda line: say(f"{time.monotonic() - began:6.1f} s  {line}")


def counted(kinds: Iterable[str]) -> str:
    """How often each is there."""
    return ", ".join(f"{it} {times:,}" for it, times in sorted(Counter(kinds).items())) or "none"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns of equal width; a page can show them as they are."""
    lines = [[*header], *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    padded = (map(str.ljust, line, widths) for line in lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in padded)
