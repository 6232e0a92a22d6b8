"""Clients of the router: they take rides, repeat requests at random, and ask for rides.

Their requests come at one rate, whatever is down. Most rides have an Idempotency-Key, and are asked
for again, answered or not, and at the end until they are answered; one without a key only once.
"""

import asyncio
import json
import random
import time
from collections import Counter
from decimal import Decimal
from typing import Any, NamedTuple

import aiohttp

from lab.chaos.clients import Clients, read
from lab.chaos.evidence import Ask, Journal
from rocket_rides.cells import CELL_SIZE

# Of the requests: a new ride, one that was asked for before, a look at a ride, a ride of no cell.
SHARES = {"new": 50, "again": 42, "look": 7, "nowhere": 1}
KEYED = 0.8  # of the new rides
RECENT = 300  # rides, of which one is asked for again, or looked at
NOWHERE = 90 * CELL_SIZE + 1
AWAY = (502, 503, 504)
NOT_TAKEN = "not taken"


class Look(NamedTuple):
    ask: Ask
    ride: int
    found: Decimal | None  # under its id; None is a 404


class Reply(NamedTuple):
    status: int
    content: str
    sent: float  # when its request was, on the monotonic clock


class Crowd(Clients):
    """Sends `rate` requests a second, on average, to the router at `address`."""

    def __init__(self, seed: int, address: str, rate: float) -> None:
        super().__init__(Journal())
        self.looks: list[Look] = []
        self.refused: set[Decimal] = set()  # rides without a key that were said not to be taken
        self.replies: Counter[str] = Counter()
        self._url, self._rate = f"http://{address}/rides", rate
        self._dice = random.Random(f"{seed}/clients")

    async def _ask_for_rides(self) -> None:
        async with asyncio.TaskGroup() as requests:
            while not self._ending.is_set():
                await self._pause()
                [kind] = self._dice.choices([*SHARES], [*SHARES.values()])
                requests.create_task(self._request(kind))
            while time.monotonic() < self._give_up_at and (ask := self._unanswered()):
                await self._pause()
                requests.create_task(self._post(ask))

    async def _pause(self) -> None:
        await asyncio.sleep(self._dice.expovariate(self._rate))

    def _unanswered(self) -> Ask | None:
        asks = [ask for ask in self.journal.asks if ask.key and not ask.answers]
        return self._dice.choice(asks) if asks else None

    async def _request(self, kind: str) -> None:
        recent = self.journal.asks[-RECENT:]
        if kind == "again" and (keyed := [ask for ask in recent if ask.key]):
            await self._post(self._dice.choice(keyed))
        elif kind == "look" and (answered := [ask for ask in recent if ask.answers]):
            await self._look(self._dice.choice(answered))
        elif kind == "nowhere":
            if (reply := await self._ask("GET", f"/{NOWHERE}")) and reply.status != 404:
                self._trouble("a ride of a cell that is not there", reply)
        else:
            await self._post(self.journal.ask("key" if self._dice.random() < KEYED else None))

    async def _post(self, ask: Ask) -> None:
        ask.whole = True
        headers = {"Idempotency-Key": ask.key} if ask.key else {}
        reply = await self._ask("POST", data={"distance": str(ask.distance)}, headers=headers)
        if reply is None:
            return
        if reply.status == 201:
            ask.answers.append(read(reply.content, reply.sent))
        elif reply.status not in AWAY:
            self._trouble(f"the ride of {ask.distance} m", reply)
        elif not ask.key and NOT_TAKEN in reply.content:
            self.refused.add(ask.distance)

    async def _look(self, ask: Ask) -> None:
        ride = ask.answers[0].ride
        reply = await self._ask("GET", f"/{ride}")
        if reply and reply.status == 200:
            found = json.loads(reply.content, parse_float=Decimal)["ride"]["distance"]
            self.looks.append(Look(ask, ride, Decimal(found)))
        elif reply and reply.status == 404:
            self.looks.append(Look(ask, ride, None))
        elif reply and reply.status not in AWAY:
            self._trouble(f"a look at ride {ride}", reply)

    async def _ask(self, method: str, path: str = "", **content: Any) -> Reply | None:
        """One request; None where no answer came."""
        sent = time.monotonic()
        try:
            async with self._api.request(method, self._url + path, **content) as response:
                reply = Reply(response.status, await response.text(), sent)
        except (aiohttp.ClientError, OSError):
            self.replies["none"] += 1
            return None
        self.replies[str(reply.status)] += 1
        if reply.status in AWAY and response.headers.get("Retry-After") != "1":
            self._trouble("a request, without Retry-After: 1,", reply)
        return reply

    def _trouble(self, what: str, reply: Reply) -> None:
        said = f"{what} was answered with {reply.status}: {reply.content[:200]}"
        self.journal.troubles.append(said)
