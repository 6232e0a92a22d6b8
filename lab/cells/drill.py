"""One drill: two cells under load, one fault after another, and slots that move meanwhile."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from lab.cells.books import Books
from lab.cells.cell import Cell
from lab.cells.clients import Crowd
from lab.cells.router import Mover, Router
from lab.chaos.backup import Backup
from lab.chaos.evidence import Restore
from lab.network import Host, switch
from lab.progress import progress
from lab.until import PATIENCE, until

PAUSES = (1.0, 3.0)  # seconds between two faults
CALM = 8.0  # seconds before a cell is killed, in which nothing else is broken
DEAD = 8.0  # seconds until it starts again
RIDES_AFTER_BACKUP = (2.0, 6.0)  # seconds, in which slots move, too
CUT_OFF = (2.0, 6.0)
ROUTER_DOWN = (0.2, 2.0)


class Death(NamedTuple):
    cell: int
    began: float  # on the monotonic clock


class Drill:
    def __init__(self, folder: Path, seed: int, rate: float) -> None:
        switch()
        self.cells = [Cell(n, folder, Host(f"cell{n}", f"10.0.0.1{n}")) for n in (0, 1)]
        self.router = Router(folder, Host("router", "10.0.0.2"), self.cells)
        self.clients = Host("clients", "10.0.0.3")
        self.crowd = Crowd(seed, self.router.address, rate)
        self.say = progress()
        self.mover = Mover(seed, self.router, self.say)
        self.struck: Counter[str] = Counter()
        self.deaths: list[Death] = []
        self._dice = random.Random(seed)
        self._exits = ExitStack()
        self._faults = {
            "cell killed": self.kill_cell,
            "cell cut off": self.cut_cell_off,
            "cell restored": self.restore_cell,
            "router killed": self.kill_router,
        }

    def run(self, seconds: float) -> Books:
        """Play each fault, one after another, and settle. Raises ServerFailed or TimeoutError."""
        for cell in self.cells:
            self._exits.callback(cell.stop)
            cell.start()
        self._exits.callback(self.router.kill)
        self.router.start()
        self._exits.callback(self.crowd.stop)
        self._began = time.monotonic()
        with self.router.host.entered():
            self.mover.start()
        with self.clients.entered():  # the thread that it starts is there, too
            self.crowd.start()
        for kind in self._plan(seconds):
            self.struck[kind] += 1
            self.say(self._faults[kind]())
            time.sleep(self._dice.uniform(*PAUSES))
        self.mover.end()
        self.crowd.end()
        return self._books()

    def _plan(self, seconds: float) -> Iterator[str]:
        """Every kind of fault once; then, in other orders, again, until the time is up."""
        end, first_round = self._began + seconds, True
        while first_round or time.monotonic() < end:
            for kind in self._dice.sample([*self._faults], len(self._faults)):
                if first_round or time.monotonic() < end:
                    yield kind
            first_round = False

    def kill_cell(self) -> str:
        cell = self._dice.choice(self.cells)
        time.sleep(CALM)
        began = time.monotonic()
        self.deaths.append(Death(cell.number, began))
        cell.lose(DEAD)
        up_after = time.monotonic() - began - DEAD
        return f"cell {cell.number} killed, for {DEAD:.0f} s; {up_after:.1f} s more until it served"

    def cut_cell_off(self) -> str:
        cell, seconds = self._dice.choice(self.cells), self._dice.uniform(*CUT_OFF)
        cell.host.cut_off()
        time.sleep(seconds)
        cell.host.join()
        return f"cell {cell.number} cut off, for {seconds:.1f} s"

    def restore_cell(self) -> str:
        """Before its API starts, the router's command is run for it, as `cells/README.md` says."""
        cell, seconds = self._dice.choice(self.cells), self._dice.uniform(*RIDES_AFTER_BACKUP)
        backup = Backup(cell.postgres, "drill")
        time.sleep(seconds)
        with self.mover.busy:
            cell.restore(backup, self._dice.random() < 0.5)
            self.router.prepare(cell)
            # Until now, another cell that has a key may have answered with a ride that is lost.
            cell.restores.append(Restore(backup.began, time.monotonic(), cell.number))
            cell.start_services("api")
        return f"cell {cell.number} restored from a backup that was at least {seconds:.0f} s old"

    def kill_router(self) -> str:
        seconds = self._dice.uniform(*ROUTER_DOWN)
        self.router.kill()
        time.sleep(seconds)
        self.router.start()
        return f"router killed, for {seconds:.1f} s"

    def _books(self) -> Books:
        found = [*self.crowd.journal.troubles]
        if self.mover.error:
            found.append(self.mover.error)
        if not self.mover.moves:
            found.append("no slot has moved")
        with suppress(TimeoutError):
            until(lambda: not self._left(), "what is left is among the findings", PATIENCE)
        found += self._left()
        finals = {cell.number: cell.final_state() for cell in self.cells}
        restores = [restore for cell in self.cells for restore in cell.restores]
        crowd = self.crowd
        return Books(crowd.journal.asks, finals, restores, crowd.looks, crowd.refused, found)

    def _left(self) -> list[str]:
        return [sentence for cell in self.cells for sentence in cell.left()]

    def stop(self) -> None:
        self._exits.close()
