"""A block of a page: what is made from the code, and replaced as a whole.

The line `<!--made:NAME-->` begins it, `<!--end-->` ends it.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

BLOCK = re.compile(r"(<!--made:(\w+)-->\n)(.*?)(<!--end-->)", re.DOTALL)

Blocks = Mapping[str, Callable[[], str]]  # by name, what makes their content


def filled(page: str, blocks: Blocks) -> str:
    """The page with what the code says now in its blocks. Raises KeyError for an unknown block."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{blocks[found[2]]()}\n\n{found[4]}", page)


def write(page: Path, blocks: Blocks) -> None:
    page.write_text(filled(page.read_text(), blocks))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
