"""Clients of the API: each posts rides until they are answered, and some behave badly.

Every ride has an Idempotency-Key, and is posted again under it until an answer comes. One in six
begins with a client that hangs up; half of these are never posted again. Some are posted again
seconds after their answer, and some rated. A quarter of the requests belong to a trace, and half
have malformed trace headers.
"""

import asyncio
import json
import math
import random
import time
from collections import deque
from collections.abc import Container, Mapping
from contextlib import ExitStack, closing, suppress
from decimal import Decimal
from typing import NamedTuple

import aiohttp
from anyio.from_thread import start_blocking_portal

from lab.chaos.evidence import Answer, Ask, Journal, Rated
from unified_log.errors import in_one_line
from unified_log.waiting import delays

HOST = "127.0.0.1"
FORM = "application/x-www-form-urlencoded"
TIMEOUT = 4.0  # seconds; the API answers within three unless it is stopped
AGAIN_AFTER = 5.0  # seconds; a restore may happen in between
AGAIN = 0.05  # of the rides
RATED = 0.3  # of the rides
FIRST = (84, 8, 8)  # percent that hang up never, within the request, or before the answer
FEWEST = 8  # clients
BUSIEST = 10.0  # rides a second that one client may be asked to post
PATIENCE = 60.0  # seconds for which they retry after the faults have ended
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TRACES: tuple[dict[str, str], ...] = (
    {},
    {"traceparent": PARENT, "tracestate": "chaos=1"},
    {"traceparent": PARENT, "tracestate": "chaos"},
    {"traceparent": PARENT[:-3], "tracestate": "chaos=1"},
)


class Refused(NamedTuple):
    """A request that was sent whole and got no good answer; `at` is on the monotonic clock."""

    at: float  # when that was known
    why: str


class Clients:
    """They ask for rides in a thread of their own, as the journal notes."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._ending = asyncio.Event()
        self._give_up_at = float("inf")
        self._exits = ExitStack()

    def start(self) -> None:
        self._portal = self._exits.enter_context(start_blocking_portal())
        self._playing = self._portal.start_task_soon(self._play)
        self._exits.callback(self._playing.cancel)

    async def _play(self) -> None:
        time_out = aiohttp.ClientTimeout(total=TIMEOUT)
        async with aiohttp.ClientSession(timeout=time_out) as self._api:
            await self._ask_for_rides()

    async def _ask_for_rides(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        """Return when what was asked for is answered or given up. Raises a client's error."""
        self._give_up_at = time.monotonic() + PATIENCE
        self._portal.call(self._ending.set)
        self._playing.result()
        self.stop()

    def stop(self) -> None:
        self._exits.close()


class Crowd(Clients):
    """As many clients as it takes to post up to `rate` rides a second to the API at `port`."""

    def __init__(
        self, seed: int, port: int, rate: float, journal: Journal, away: Container[int] = (503,)
    ) -> None:
        """`away` is what may be answered where nobody can take a request."""
        super().__init__(journal)
        number = max(FEWEST, math.ceil(rate / BUSIEST))
        self.refused: list[Refused] = []  # each is tried again
        self._names = [f"{seed}/{n}" for n in range(number)]
        self._rate = rate / number  # of each
        self._port, self._away = port, away

    async def _ask_for_rides(self) -> None:
        await asyncio.gather(*map(self._client, self._names))

    async def _client(self, name: str) -> None:
        dice = random.Random(name)
        again: deque[Ask] = deque()  # rides to post once more, in the order of their answers
        while not await self._ends_within(dice.expovariate(self._rate)):
            ask = self.journal.ask(name)
            await self._misbehave(ask, dice)
            if not ask.given_up:
                await self._post(ask)
            if ask.answers and dice.random() < RATED:
                await self._rate_ride(ask)
            if ask.answers and dice.random() < AGAIN:
                again.append(ask)
            while again and again[0].answers[0].came + AGAIN_AFTER < time.monotonic():
                await self._post(again.popleft())
        for ask in again:
            await self._post(ask)

    async def _ends_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ending.wait(), seconds)
        return self._ending.is_set()

    async def _misbehave(self, ask: Ask, dice: random.Random) -> None:
        """For one ride in six, send some or all of the request, and hang up."""
        whole = request(ask)
        half = whole[: dice.randint(10, len(whole) - 1)]
        [first] = dice.choices([b"", half, whole], FIRST)
        if first:
            ask.whole = first == whole
            ask.given_up = dice.random() < 0.5
            await self._send(first, dice.choice([0, 0.002, 0.02]))

    async def _send(self, data: bytes, pause: float) -> None:
        with suppress(OSError):
            async with asyncio.timeout(TIMEOUT):
                _, api = await asyncio.open_connection(HOST, self._port)
                with closing(api):
                    api.write(data)
                    await api.drain()
                    await asyncio.sleep(pause)

    async def _post(self, ask: Ask) -> None:
        ask.whole = True
        ride, what = {"distance": str(ask.distance)}, f"the ride of {ask.distance} m"
        if answered := await self._until_answered(ask, "rides", ride, what, {201}):
            ask.answers.append(read(*answered))

    async def _rate_ride(self, ask: Ask) -> None:
        """Rate the ride until that is answered. After a restore, its id may be free, or reused."""
        ride, stars = ask.answers[-1].ride, 1 + int(ask.distance.scaleb(3)) % 5
        path, what = f"rides/{ride}/rating", f"the rating of ride {ride}"
        good = {200, 201, 404, 409}
        if answered := await self._until_answered(ask, path, {"stars": str(stars)}, what, good):
            content, sent = answered
            if given := json.loads(content).get("rating"):
                ask.rated.append(Rated(ride, given["stars"], sent, time.monotonic()))
            elif not self.journal.restores:
                self.journal.troubles.append(f"{what} was answered with {content}")

    async def _until_answered(
        self, ask: Ask, path: str, data: Mapping[str, str], what: str, good: Container[int]
    ) -> tuple[str, float] | None:
        """Post until there is a `good` answer; returns it, and when its request was sent."""
        url = f"http://{HOST}:{self._port}/{path}"
        for delay in delays(0.02, 0.5):
            sent = time.monotonic()
            try:
                async with self._api.post(url, data=data, headers=headers(ask)) as response:
                    status, content = response.status, await response.text()
            except (aiohttp.ClientError, OSError) as error:
                self.refused.append(Refused(time.monotonic(), in_one_line(error)))
            else:
                if status in good:
                    return content, sent
                said = f"{status}: {content[:200]}"
                self.refused.append(Refused(time.monotonic(), said))
                if status not in self._away:
                    self.journal.troubles.append(f"{what} was answered with {said}")
                    if status < 500:
                        return None
            if time.monotonic() > self._give_up_at:
                return None
            await asyncio.sleep(delay)
        return None


def headers(ask: Ask) -> dict[str, str]:
    trace = TRACES[int(ask.distance.scaleb(3)) % len(TRACES)]
    return {"Idempotency-Key": str(ask.key), **trace}


def request(ask: Ask) -> bytes:
    body = f"distance={ask.distance}"
    fields = {"Host": HOST, **headers(ask), "Content-Type": FORM, "Content-Length": len(body)}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST /rides HTTP/1.1\r\n{head}\r\n{body}".encode()


def read(content: str, sent: float) -> Answer:
    ride = json.loads(content, parse_float=Decimal)["ride"]
    return Answer(ride["id"], Decimal(ride["distance"]), sent, time.monotonic())
