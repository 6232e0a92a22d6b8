"""HAProxy before the cells, with the configuration that everybody runs, and moves of slots."""

import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from demo.embedded.welcome import answers
from lab.balancer import BEFORE_CELLS, HAPROXY
from lab.cells.cell import Cell
from lab.network import Host
from lab.processes import clean_environment, start
from lab.until import until

PORT = 8080
PAUSES = (1.0, 4.0)  # seconds between two moves
AGAIN_AFTER = 1.0  # seconds; a cell is away, or the router is
KILLED = 0.7  # of the moves, unless they are over sooner
KILLED_AT = (0.6, 1.0)  # of the time that a move takes; most of that is its start
PATIENCE = 90.0  # seconds for a move, in which a cell may be down


class Router:
    """On a host of its own, where slots are moved from, too."""

    def __init__(self, folder: Path, host: Host, cells: Sequence[Cell]) -> None:
        self.address = f"{host.address}:{PORT}"
        self.host = host
        self.map = folder / "slots.map"
        shutil.copy(BEFORE_CELLS.with_name("slots.map"), self.map)
        self._log = (folder / "router.log").open("wb")
        self._process: subprocess.Popen[bytes] | None = None
        self._environment = clean_environment() | {
            "ROUTER": self.address,
            "ROUTER_SOCKET": str(folder / "router"),
            "ROUTER_MAP": str(self.map),
            **{f"CELL_{cell.number}": cell.address for cell in cells},
            **{f"CELL_{cell.number}_DATABASE_URL": cell.database_url for cell in cells},
        }

    def start(self) -> None:
        """Return when it sends requests on. Raises TimeoutError."""
        with self.host.entered():
            self._process = self._run([HAPROXY or "haproxy", "-q", "-db", "-f", str(BEFORE_CELLS)])
        until(lambda: answers(self.address, "/readyz"), "the router does not answer")

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()

    def cell_of(self, slot: int) -> int:
        """The cell that has it, while no move is under way."""
        return int(self.map.read_text().splitlines()[slot].split()[1])

    def move(self, slots: str, cell: int) -> subprocess.Popen[bytes]:
        return self._run([sys.executable, "-m", "cells.router", slots, str(cell)])

    def prepare(self, cell: Cell) -> None:
        """Run the command for a cell that was restored, while no move is under way."""
        late = f"cell {cell.number} can't be prepared"
        until(lambda: self.move("restored", cell.number).wait() == 0, late)

    def _run(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        return start(command, self._environment, self._log)


class Mover(threading.Thread):
    """Moves slots back and forth; each move is run until it succeeds, and some runs are killed."""

    def __init__(self, seed: int, router: Router, say: Callable[[str], None]) -> None:
        super().__init__(name="mover", daemon=True)
        self.busy = threading.Lock()  # held during a move
        self.moves = self.killed = 0
        self.error: str | None = None
        self._took = 1.0  # seconds, of the last move that took one run
        self._dice = random.Random(f"{seed}/moves")
        self._router, self._say = router, say
        self._ending = threading.Event()

    def run(self) -> None:
        slots, cell = "80-ff", 1
        try:
            while not self._ending.is_set():
                with self.busy:
                    self._move(slots, cell)
                self._ending.wait(self._dice.uniform(*PAUSES))
                first, last = sorted(self._dice.sample(range(256), 2))
                slots, cell = f"{first:02x}-{last:02x}", 1 - self._router.cell_of(first)
        except Exception as reason:  # a drill without moves would show nothing
            self.error = f"slots no longer move: {reason}"

    def end(self) -> None:
        """Return when no move is under way."""
        self._ending.set()
        self.join()

    def _move(self, slots: str, cell: int) -> None:
        is_killed, part = self._dice.random() < KILLED, self._dice.uniform(*KILLED_AT)
        began, runs = time.monotonic(), 1
        moving = self._router.move(slots, cell)
        if is_killed:
            with suppress(subprocess.TimeoutExpired):
                moving.wait(part * self._took)
            moving.kill()
        while moving.wait(PATIENCE) != 0:
            if time.monotonic() > began + PATIENCE:
                raise TimeoutError(f"slots {slots} could not be moved to cell {cell}")
            if moving.returncode > 0:
                time.sleep(AGAIN_AFTER)
            else:
                self.killed += 1
            runs += 1
            moving = self._router.move(slots, cell)
        if runs == 1:
            self._took = time.monotonic() - began
        self.moves += 1
        self._say(f"slots {slots} moved to cell {cell}" + (f", in {runs} runs" * (runs > 1)))
