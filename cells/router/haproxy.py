"""A running HAProxy: what it says of the cells, and the map in its memory."""

import socket
from pathlib import Path

from cells.router.slots import CELLS, Slots
from unified_log.errors import Refused

TIMEOUT = 5.0  # seconds, for an answer


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
