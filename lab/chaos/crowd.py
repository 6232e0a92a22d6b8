"""All clients of a run, in a process of their own."""

import asyncio
import math
import time

from lab.chaos.apart import Apart
from lab.chaos.clients import Client
from lab.chaos.journal import Ask, Journal

FEWEST = 8  # clients
BUSIEST = 10.0  # rides a second that one client may be asked to post
PATIENCE = 60.0  # seconds they keep asking after the faults have ended
POLL = 0.05
PAGE = 10_000  # rides that are handed over at once


class Posting:
    """The clients, on the event loop of their process."""

    def __init__(self, seed: int, port: int, rate: float) -> None:
        self._journal = Journal(first=1)
        number = max(FEWEST, math.ceil(rate / BUSIEST))
        self._clients = [
            Client(f"{seed}/{n}", port, rate / number, self._journal) for n in range(number)
        ]
        self._posting = [asyncio.ensure_future(client.run()) for client in self._clients]

    async def answered(self) -> int:
        """How many rides have been answered."""
        return self._journal.answered

    async def end(self, patience: float) -> None:
        for client in self._clients:
            client.end(patience)

    async def is_over(self) -> bool:
        """Whether every client has its answers, or has given up. Raises what a client raised."""
        for each in self._posting:
            if each.done():
                each.result()
        return all(each.done() for each in self._posting)

    async def troubles(self) -> list[str]:
        return self._journal.troubles

    async def take(self) -> list[Ask]:
        """Some of the rides that were asked for, each once; none when there are no more."""
        asks = self._journal.asks
        asks[:], page = asks[PAGE:], asks[:PAGE]
        return page


class Crowd:
    """Posts `rate` rides a second to the API at `port`, by as many clients as that takes."""

    def __init__(self, seed: int, port: int, rate: float) -> None:
        self._values = seed, port, rate
        self._apart: Apart | None = None
        self.memory = 0  # bytes that its process has had at most, once it has ended

    def start(self) -> None:
        self._apart = Apart(Posting, *self._values)

    @property
    def answered(self) -> int:
        """How many rides have been answered."""
        return int(self._there.ask("answered"))

    def end(self, patience: float = PATIENCE) -> None:
        """Return when each ride that was requested is answered, or given up after `patience`."""
        self._there.ask("end", patience)
        while not self._there.ask("is_over"):
            time.sleep(POLL)

    def hand_over(self) -> Journal:
        """What the clients asked for, and ends their process."""
        journal = Journal(first=1)
        journal.troubles = self._there.ask("troubles")
        while page := self._there.ask("take"):
            journal.asks += page
        self.memory = self._there.memory
        self._there.end()
        return journal

    @property
    def _there(self) -> Apart:
        assert self._apart is not None  # noqa: S101 (it has started)
        return self._apart
