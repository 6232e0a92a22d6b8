"""What one lifts: copied, renamed and run as docs/lift-it.md says, with nothing else."""

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg

from lab.processes import start
from rocket_rides.settings import PROJECT
from tests.support.orders import shop
from tests.support.receipts import SECRET
from tests.support.world import Service, World

PAGE = (PROJECT / "docs/lift-it.md").read_text()
COMMANDS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
*COPY, RENAME = COMMANDS
[YOUR_TABLE] = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
BEFORE = """
    INSERT INTO orders (customer, amount) SELECT 'early', n + 0.25 FROM generate_series(1, %s) n
"""
TRUTH = "SELECT max(id), sum(amount) FROM orders"


def lift(parts: str, folder: Path) -> None:
    """Do what the page says, for these of its parts."""
    copied = [commands for commands in COPY if commands[3] in parts]
    assert len(copied) == len(parts)
    for commands in (*copied, RENAME):
        subprocess.run(
            ["/bin/bash", "-euo", "pipefail", "-c", commands],
            cwd=PROJECT,
            env={**os.environ, "LIFTED": str(folder)},
            check=True,
        )
    (folder / "migrations/kinds").mkdir()
    (folder / "migrations/kinds/1_orders.sql").write_text(YOUR_TABLE)


class Shop:
    """The shop, with its orders of before, and the parts that it has lifted.

    The ids of those orders begin at 1, so it can only be cell 0.
    """

    def __init__(self, parts: str, world: World, cell: int = 0) -> None:
        self.world = world
        self.cell = {"CELL": str(cell)}
        self.folder = world.folder / "lifted"
        self.folder.mkdir()
        lift(parts, self.folder)
        self.connection: psycopg.Connection = world.connect()
        self.connection.execute(shop.TABLE)
        self.connection.execute(BEFORE, [100])
        assert self.run("-m", "migrations").ends() == 0

    def run(self, *arguments: str, **settings: str) -> Service:
        """Start Python with these arguments, in the lifted folder, where it finds no other code."""
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        path = self.world.new_output(Path(arguments[-1]).name)
        with path.open("wb") as output:
            given = inherited | self.world.settings | self.cell | settings
            process = start([sys.executable, *arguments], given, output, self.folder)
        return self.world.started(Service(process, path))

    def customer(self, name: str, orders: int) -> Service:
        """Somebody who places orders, one after another."""
        return self.run(shop.__file__, name, str(orders))

    def worker(self, url: str) -> Service:
        """Who delivers the receipts."""
        given = {"RECEIPT_URL": url, "RECEIPT_SECRET": SECRET, "SWEEP_AFTER": "0.1"}
        return self.run("-m", "consumers.receipts", "one", **given).says("delivers receipts")

    def delivered(self, orders: int) -> bool:
        """Whether all receipts up to that order have an outcome."""
        return self.world.value("SELECT complete_to FROM receipts_state") == orders

    @property
    def total(self) -> tuple[int, object]:
        """Where the only consumer stands, and its total."""
        return self.world.standing("money")

    def exact(self) -> bool:
        return self.total == self.connection.execute(TRUTH).fetchone()
