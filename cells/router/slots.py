"""Which cell has which slot: the map on disk, which HAProxy reads when it starts.

A key's slot is the first two hexadecimal digits of its SHA-256. A line of the map is a slot and the
number of its cell.
"""

import os
from pathlib import Path

from rocket_rides.cells import LAST_CELL
from unified_log.errors import Refused

SLOTS = [f"{number:02x}" for number in range(256)]
CELLS = {str(cell): cell for cell in range(LAST_CELL + 1)}

Slots = dict[str, int]  # each slot's cell


def read(path: Path) -> Slots:
    """The map on disk. Raises Refused unless it has each slot once, and each with a cell."""
    try:
        lines = [line.split() for line in path.read_text().splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path} can't be read: {error}") from None
    for words in lines:
        if len(words) != 2 or words[1] not in CELLS:
            raise Refused(
                f"{path}: a line is a slot and a cell from 0 to {LAST_CELL}, not {' '.join(words)}"
            )
    if sorted(slot for slot, _ in lines) != SLOTS:
        raise Refused(
            f"{path} must have the 256 slots 00 to ff, each once; it has {len(lines)} lines"
        )
    return {slot: CELLS[cell] for slot, cell in lines}


def write(path: Path, slots: Slots) -> None:
    """Replace the map on disk, in one step that outlasts a crash of the machine. Raises OSError."""
    path = path.resolve()  # a link to it stays one
    new = path.with_name(f"{path.name}.new")
    with new.open("w") as file:
        file.writelines(f"{slot} {slots[slot]}\n" for slot in SLOTS)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def ranges(chosen: set[str]) -> str:
    """Slots as the command line takes them, such as `00-7f,a0`."""
    numbers = sorted(int(slot, 16) for slot in chosen)
    first = [number for number in numbers if number - 1 not in numbers]
    last = [number for number in numbers if number + 1 not in numbers]
    return ",".join(
        f"{one:02x}" if one == two else f"{one:02x}-{two:02x}"
        for one, two in zip(first, last, strict=True)
    )
