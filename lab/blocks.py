"""A block of a page: what is made from the code, or measured, and replaced as a whole.

The line `<!--made:NAME-->`, or `<!--figures:NAME-->`, begins it, and `<!--end-->` ends it.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

BLOCK = re.compile(r"(<!--(?:made|figures):([\w-]+)-->\n)(.*?)(<!--end-->)", re.DOTALL)

Blocks = Mapping[str, Callable[[], str]]  # by name, what makes their content


def contents(page: str) -> dict[str, str]:
    return {found[2]: found[3] for found in BLOCK.finditer(page)}


def filled(page: str, blocks: Blocks) -> str:
    """The page with these blocks made anew, and otherwise unchanged."""

    def block(found: re.Match[str]) -> str:
        return f"{found[1]}\n{blocks[found[2]]()}\n\n{found[4]}" if found[2] in blocks else found[0]

    return BLOCK.sub(block, page)


def write(page: Path, blocks: Blocks) -> None:
    page.write_text(filled(page.read_text(), blocks))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
