"""Two cells, each an API on a database of its own, and HAProxy before them."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path

import httpx
import pytest

from api.booking import FENCE
from cells.router.__main__ import some_slots
from cells.router.haproxy import HAProxy
from cells.router.move import move
from cells.router.slots import SLOTS, read, write
from demo.embedded.servers import Postgres, Redis
from lab.balancer import BEFORE_CELLS, HAPROXY
from lab.ports import free_ports
from lab.processes import start
from migrations import upgrade
from rocket_rides.cells import CELL_SIZE
from tests.support import plain_http
from tests.support.api import Api
from tests.support.clusters import fresh_world
from tests.support.folders import short_folder
from tests.support.forks import completed
from tests.support.world import PATIENCE, World, eventually
from unified_log.errors import Refused


class Cells:
    """Cell 0 has all slots at first. `apis` and `worlds` are by the cells' numbers."""

    def __init__(self, worlds: list[World], folder: Path, exits: ExitStack) -> None:
        self.worlds = worlds
        self.apis = [Api(each) for each in self.worlds]
        self.databases = {cell: each.postgres_url for cell, each in enumerate(self.worlds)}
        self.map, self.socket = folder / "slots.map", folder / "socket"
        write(self.map, dict.fromkeys(SLOTS, 0))
        self.port = free_ports()
        self.settings = {
            "ROUTER": f"127.0.0.1:{self.port}",
            "ROUTER_SOCKET": str(self.socket),
            "ROUTER_MAP": str(self.map),
            **{f"CELL_{cell}": f"127.0.0.1:{api.port}" for cell, api in enumerate(self.apis)},
            **{f"CELL_{cell}_DATABASE_URL": url for cell, url in self.databases.items()},
        }
        self.router = HAProxy(str(self.socket), self.map)
        self.client = exits.enter_context(plain_http.client(self.port))
        self._process: subprocess.Popen[bytes] | None = None
        exits.callback(self.stop)
        self.start()

    def start(self) -> None:
        """Start the router, and wait until it takes both cells for healthy."""
        assert HAPROXY
        command = [HAPROXY, "-q", "-db", "-f", str(BEFORE_CELLS)]
        self._process = start(command, os.environ | self.settings, subprocess.DEVNULL)
        eventually(self._is_up, "a router with two cells")

    def stop(self) -> None:
        if self._process:
            self._process.terminate()
            self._process.wait(PATIENCE)
            self._process = None

    def put_back(self) -> None:
        """Start what is down, give all slots to cell 0, and forget all keys; the rides stay."""
        self.apis = [
            api if api.service.process.poll() is None else Api(world, API_PORT=str(api.port))
            for api, world in zip(self.apis, self.worlds, strict=True)
        ]
        if not self._process:
            self.start()
        eventually(self._is_up, "a router with two cells")
        for world in self.worlds:
            world.connection.execute(
                f"ALTER TABLE idempotency_keys DROP CONSTRAINT IF EXISTS {FENCE}"
            )
            world.connection.execute("TRUNCATE idempotency_keys")
        write(self.map, dict.fromkeys(SLOTS, 0))
        self.router.set(read(self.map))

    def post(self, key: str | None = None, distance: str = "5") -> httpx.Response:
        headers = {"Idempotency-Key": key} if key else {}
        return self.client.post("/rides", data={"distance": distance}, headers=headers)

    def move(self, slots: str, cell: int) -> subprocess.CompletedProcess[str]:
        """`python -m cells.router`, as it is run."""
        environment = os.environ | self.settings
        return completed("cells.router", slots, str(cell), environment=environment)

    def give(self, slots: str, cell: int) -> None:
        """The same in this process, which takes a tenth of the time."""
        move(some_slots(slots), cell, self.map, self.router, self.databases)

    def lose_api(self, cell: int) -> None:
        """Kill it, and wait until the router has noticed: before that, a client gets no answer."""
        self.apis[cell].service.kill()

        def is_noticed() -> bool:
            try:
                self.router.require_up(cell)
            except Refused:
                return True
            return False

        eventually(is_noticed, "the router's notice")

    @contextmanager
    def api_away(self, cell: int) -> Iterator[None]:
        """While the block lasts, the router finds the API of this cell not ready."""
        self.router.ask(f"disable server cell_{cell}/api")
        try:
            yield
        finally:
            self.router.ask(f"enable server cell_{cell}/api")
            eventually(self._is_up, "a router with two cells")

    def takers(self, key: str) -> list[int]:
        """The cells whose API takes a ride under the key, whoever brings it there."""
        answers = [api.post(**{"Idempotency-Key": key}) for api in self.apis]
        assert {answer.status_code for answer in answers} <= {201, 503}
        return [cell for cell, answer in enumerate(answers) if answer.status_code == 201]

    def rides(self) -> list[int]:
        """How many rides each cell has."""
        return [world.value("SELECT count(*) FROM rides") for world in self.worlds]

    def rides_of(self, key: str) -> int:
        """How many rides this key has taken, in all cells."""
        rides: set[int] = set()
        for world in self.worlds:
            found = world.connection.execute(
                "SELECT ride_id FROM idempotency_keys WHERE key = %s", [key]
            )
            rides.update(ride_id for [ride_id] in found)
        return len(rides)

    def _is_up(self) -> bool:
        try:
            with plain_http.client(self.port) as client:
                found = [client.get(f"/rides/{cell * CELL_SIZE + 1}/receipt") for cell in (0, 1)]
        except httpx.TransportError:
            return False
        return all(answer.status_code in (200, 404) for answer in found)


def key_of(slots: range) -> str:
    """A key of one of these slots."""
    return next(
        key
        for key in (f"key{number}" for number in range(10**6))
        if int(sha256(key.encode()).hexdigest()[:2], 16) in slots
    )


@contextmanager
def two_cells(postgres: Postgres, redis: Redis) -> Iterator[Cells]:
    """They share the servers, whatever cell the other tests run on."""
    if HAPROXY is None:
        pytest.skip("there is no haproxy here")
    with ExitStack() as exits:
        exits.enter_context(pytest.MonkeyPatch.context()).delenv("CELL", raising=False)
        folder = exits.enter_context(short_folder())
        worlds = [exits.enter_context(fresh_world(postgres, redis, folder, {})) for _ in "ab"]
        for cell, world in enumerate(worlds):
            upgrade(world.postgres_url, cell)
        yield Cells(worlds, folder, exits)
