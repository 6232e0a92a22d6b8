"""What a drill runs on: a folder of its own, and a whole fleet's processes behind HAProxy.

The fleet is that of chaos, with two APIs and no injected faults. Its servers are the drill's. Each
process runs the code of a source tree, and can be restarted on another one, as an operator would.
"""

import signal
from collections.abc import Set
from contextlib import closing, suppress
from pathlib import Path

import psycopg

from demo.embedded.welcome import answers
from lab.balancer import HOST, Balancer
from lab.chaos.evidence import Journal
from lab.chaos.fleet import COMMANDS, CONSUMERS, RATINGS, READERS, RECEIPTS, ROLLUPS, STREAMERS
from lab.chaos.receiver import Receiver
from lab.chaos.service import Service, Services
from lab.place import Place
from lab.ports import free_ports
from lab.until import until
from rocket_rides import sessions
from rocket_rides.settings import PROJECT
from unified_log import database
from unified_log.errors import Unavailable
from unified_log.sessions import STREAMER, reader

APIS = ("api0", "api1")
ORDER = (*READERS, *STREAMERS, *APIS)  # whoever reads a new kind of record, before who writes it
PATIENCE = 180.0  # seconds in which a process is at work, or ends by itself, on a busy machine
LOOK = 0.1  # seconds
AT_WORK = """
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = %s
"""
# What the session of a process is called once it has completed a round of work.
SESSIONS = {
    **dict.fromkeys(STREAMERS, STREAMER),
    **dict.fromkeys(ROLLUPS, sessions.ROLLUP),
    **{name: reader("total", name) for name in CONSUMERS},
    **{name: reader("ratings", name) for name in RATINGS},
    **{name: sessions.receipts(name) for name in RECEIPTS},
}


class Stage(Place):
    """A drill's folder, and what runs there. Methods raise TimeoutError."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.receiver = Receiver()
        self.journal = Journal()  # of the drill's clients
        self.found: list[str] = []  # by the drill: a sentence each
        self.services = Services()
        # Of every process; a drill adds DATABASE_URL and REDIS_URL.
        self.settings = {
            "DATA_DIR": str(folder / "fleet"),
            "RECEIPT_URL": self.receiver.url,
            "RECEIPT_SECRET": self.receiver.secret,
        }

    def start(self, tree: Path = PROJECT) -> None:
        """Run the fleet from this tree; the schema is there. Return when all is at work."""
        self.receiver.start()
        self.exits.callback(self.receiver.stop)
        first = free_ports(len(APIS))
        self._ports = {name: first + n for n, name in enumerate(APIS)}
        self.balancer = Balancer(self.folder, [*self._ports.values()])
        self.exits.callback(self.balancer.stop)
        self.balancer.start()
        self.exits.callback(self.services.kill)
        for name in ORDER:
            more = {"API_PORT": str(self._ports[name])} if name in APIS else {}
            command = COMMANDS.get(name, ["api"])
            service = Service(command, self.settings | more, self.folder / f"{name}.log")
            service.tree = tree
            self.services[name] = service
            service.start()
        for name in ORDER:
            self.wait_for(name)
        for name in APIS:
            self.balancer.put_back(name)

    def restart(self, name: str, tree: Path | None = None) -> None:
        """End this process by SIGTERM; return when the next, of this tree, is at work."""
        service = self.services[name]
        service.tree = tree or service.tree
        if name in APIS:
            self.balancer.take_out(name)
        before = self.sessions(name)
        service.end_by(signal.SIGTERM)
        self.wait_for(name, before)
        if name in APIS:
            self.balancer.put_back(name)

    def wait_for(self, name: str, before: Set[int] = frozenset()) -> None:
        """Return when it is at work, and its like; sessions of `before` may outlast them."""
        late = f"{name} is not at work after {PATIENCE:.0f} s"
        until(lambda: self.is_at_work(name, before), late, PATIENCE, LOOK)

    def is_at_work(self, name: str, before: Set[int] = frozenset()) -> bool:
        if name in APIS:
            return answers(f"{HOST}:{self._ports[name]}", "/readyz")
        found = self.sessions(name)
        alike = [each for each in SESSIONS.values() if each == SESSIONS[name]]
        return len(found) == len(alike) and not found <= before

    def sessions(self, name: str) -> set[int]:
        """The pids in Postgres of those who do the same as this process; none of an API."""
        with suppress(psycopg.Error, Unavailable), closing(self.connect()) as connection:
            rows = connection.execute(AT_WORK, [SESSIONS.get(name)]).fetchall()
            return {pid for (pid,) in rows}
        return set()

    def connect(self) -> psycopg.Connection:
        """As the fleet does. Raises psycopg.Error or Unavailable."""
        return database.connect(self.settings["DATABASE_URL"], "drill")
