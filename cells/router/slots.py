"""Which cell has which slot: the map that HAProxy reads, on disk and in its memory.

A key's slot is the first two hexadecimal digits of its SHA-256. A line of the map is a slot and the
number of its cell.
"""

import os
import socket
from pathlib import Path

from rocket_rides.cells import LAST_CELL
from unified_log.errors import Refused

SLOTS = [f"{number:02x}" for number in range(256)]
CELLS = {str(cell): cell for cell in range(LAST_CELL + 1)}
TIMEOUT = 5.0  # seconds, for an answer of HAProxy's

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


class HAProxy:
    """A running router, by its admin socket. Every method raises Refused where it does not obey."""

    def __init__(self, path: str, map_path: Path) -> None:
        self._path = path
        self._map = map_path

    def cells(self) -> set[int]:
        """The cells that it has a backend for."""
        names = {line.split(",")[0] for line in self.ask("show stat")}
        return {cell for cell in CELLS.values() if f"cell_{cell}" in names}

    def require_up(self, cell: int) -> None:
        """Make sure that it has a backend for that cell, which answers."""
        rows = [line.split(",") for line in self.ask("show stat")]
        states = {row[0]: row[17] for row in rows if row[1] == "BACKEND"}
        if f"cell_{cell}" not in states:
            raise Refused(f"HAProxy has no backend cell_{cell}: add it, and restart HAProxy")
        if states[f"cell_{cell}"] != "UP":
            raise Refused(f"HAProxy finds the API of cell {cell} not ready")

    def set(self, slots: Slots) -> None:
        """Have its memory say what is on disk. New requests are routed so from then on."""
        known = dict(line.split()[1:3] for line in self.ask(f"show map {self._map}"))
        if known.keys() != slots.keys():
            raise Refused(f"HAProxy has another map in {self._map}: restart it")
        for slot, cell in slots.items():
            if known[slot] == str(cell):
                continue
            if said := self.ask(f"set map {self._map} {slot} {cell}"):
                raise Refused(f"HAProxy: {' '.join(said)}")

    def ask(self, command: str) -> list[str]:
        """The lines of its answer to a command."""
        try:
            with socket.socket(socket.AF_UNIX) as asking:
                asking.settimeout(TIMEOUT)
                asking.connect(self._path)
                asking.sendall(f"{command}\n".encode())
                with asking.makefile() as answer:
                    lines = [line.strip() for line in answer if line.strip()]
        except OSError as error:
            raise Refused(f"HAProxy can't be reached at {self._path}: {error}") from None
        if lines and lines[0].startswith(("Unknown", "Permission", "Can't")):
            raise Refused(f"HAProxy: {lines[0]}")
        return lines
