"""Which cell has which slot: the map that HAProxy reads, on disk and in its memory.

A key's slot is the first two hexadecimal digits of its SHA-256. A line of the map is a slot and the
number of its cell; or `0>1`, while the slot moves from cell 0 to cell 1: then nobody has it.
"""

import os
import re
import socket
from pathlib import Path
from typing import NamedTuple

from rocket_rides.database import LAST_CELL
from rocket_rides.errors import Refused

SLOTS = [f"{number:02x}" for number in range(256)]
_VALUE = re.compile(r"(?:[0-9]|[1-8][0-9])(?:>(?:[0-9]|[1-8][0-9]))?")
TIMEOUT = 5.0  # seconds, for an answer of HAProxy's

Slots = dict[str, str]  # each slot's value


class Move(NamedTuple):
    """From one cell to another."""

    source: int
    target: int

    def __str__(self) -> str:
        return f"{self.source}>{self.target}"


def move_of(value: str) -> Move | None:
    """The move that a slot of this value is in; None while a cell has it."""
    source, moves, target = value.partition(">")
    return Move(int(source), int(target)) if moves else None


def read(path: Path) -> Slots:
    """The map on disk. Raises Refused unless it has each slot once, and each with a cell."""
    try:
        lines = [line.split() for line in path.read_text().splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path} can't be read: {error}") from None
    slots = {words[0]: words[-1] for words in lines}
    if sorted(slots) != SLOTS or len(lines) != len(SLOTS):
        raise Refused(
            f"{path} must have the 256 slots 00 to ff, each once; it has {len(lines)} lines"
        )
    for words in lines:
        if len(words) != 2 or not _VALUE.fullmatch(words[1]):
            raise Refused(
                f"{path}: a line is a slot and a cell from 0 to {LAST_CELL}: {' '.join(words)}"
            )
    return slots


def write(path: Path, slots: Slots) -> None:
    """Replace the map on disk, in one step that outlasts a crash of the machine."""
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

    def require_cell(self, cell: int) -> None:
        """Make sure that it has a backend for that cell."""
        if f"cell_{cell}" not in self._ask("show backend"):
            raise Refused(f"HAProxy has no backend cell_{cell}: add it, and restart HAProxy")

    def set(self, slots: Slots) -> None:
        """Have its memory say what is on disk. New requests are routed so from then on."""
        known = dict(line.split()[1:3] for line in self._ask(f"show map {self._map}"))
        if known.keys() != slots.keys():
            raise Refused(f"HAProxy has another map in {self._map}: restart it")
        for slot, value in slots.items():
            if known[slot] != value and (said := self._ask(f"set map {self._map} {slot} {value}")):
                raise Refused(f"HAProxy: {' '.join(said)}")

    def _ask(self, command: str) -> list[str]:
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
