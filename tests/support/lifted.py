"""The shop of `tests/support/orders/`, with a log as docs/lift-it.md says, and nothing else."""

import re
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import psycopg

from rocket_rides.settings import PROJECT
from tests.support import package
from tests.support.forks import Process
from tests.support.world import Service, World
from unified_log.database import one_row

PAGE = (PROJECT / "docs/lift-it.md").read_text()
REVISION, MODEL, HANDLER = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
ORDERS = PROJECT / "tests/support/orders"
KIND, NAME = "takings", "main"

BEFORE = """
    INSERT INTO orders (id, customer, amount)
    SELECT gen_random_uuid(), 'early', n + 0.25 FROM generate_series(1, %s) n
"""
STANDING = """
    SELECT position, orders, amount, largest FROM takings JOIN checkpoints USING (kind, name)
    WHERE name = %s
"""
TRUTH = "SELECT max(position), count(*), sum(amount), max(amount) FROM orders"

IMPORTABLE = """
import importlib.util, sys
print(*filter(importlib.util.find_spec, sys.argv[1:]))
"""


class Standing(NamedTuple):
    """Where the handler stands, and its state."""

    position: int
    orders: int
    amount: Decimal
    largest: Decimal


class Shop:
    """The shop, in a folder of its own, with some orders from before its log."""

    def __init__(self, world: World, wheel: Path, before: int = 100) -> None:
        self.world = world
        self.folder = world.folder / "shop"
        shutil.copytree(
            ORDERS, self.folder / "orders", ignore=shutil.ignore_patterns("__pycache__")
        )
        ZipFile(wheel).extractall(self.folder)
        self.connection: psycopg.Connection = world.connect()
        self.upgrade("orders")
        self.connection.execute(BEFORE, [before])
        (self.folder / "orders/migrations/versions/2_log.py").write_text(REVISION)
        (self.folder / "orders/takings.py").write_text(HANDLER)
        self.upgrade("head")

    def upgrade(self, revision: str) -> None:
        """Run the shop's migrations."""
        migrated = self.run("alembic", "-c", "orders/alembic.ini", "upgrade", revision)
        assert migrated.ends() == 0, migrated.output.read_text()

    def run(self, module: str, *arguments: str) -> Service:
        """Start a module of the shop, or of what it has installed."""
        output = self.world.new_output(module)
        given = package.environment() | self.world.settings
        process = Process(module, arguments, given, output, folder=self.folder)
        return self.world.started(Service(process, output))

    def importable(self, *packages: str) -> list[str]:
        """Those that the shop's processes find."""
        command = [sys.executable, "-c", IMPORTABLE, *packages]
        found = subprocess.run(
            command, cwd=self.folder, env=package.environment(), check=True, capture_output=True
        )
        return found.stdout.decode().split()

    def places(self, number: int) -> Service:
        """A customer who places so many orders, one after another."""
        return self.run("orders.place", "ann", str(number))

    def takings(self) -> Service:
        return self.run("orders.takings", NAME).says("stands at")

    @property
    def standing(self) -> Standing:
        """As committed; the handler must have begun."""
        return Standing(*one_row(self.connection.execute(STANDING, [NAME])))

    def exact(self) -> bool:
        """Whether the handler has counted every order."""
        return self.standing == self.connection.execute(TRUTH).fetchone()
