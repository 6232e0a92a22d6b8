"""What a network does to bytes on their way: it takes its time, or holds up one direction.

Nothing overtakes anything. The end of a connection is held up, too: whoever has hung up meanwhile
is still connected as far as the other side knows, and what it had asked for may arrive later.
"""

import asyncio
from collections import deque
from enum import Enum
from random import Random


class Way(Enum):
    """A direction of the traffic."""

    REQUESTS = "requests"
    ANSWERS = "answers"


class Weather:
    """What all connections of one proxy meet. Only the proxy's own thread may change it."""

    def __init__(self) -> None:
        self.pipes: set[Pipe] = set()
        self.longest_delay = 0.0  # seconds; each piece takes up to so long
        self.dice = Random()
        self.held_up: set[Way] = set()

    @property
    def is_fine(self) -> bool:
        """Whether everything is passed on at once."""
        return not self.longest_delay and not self.held_up

    def clear_up(self, way: Way, *, deliver: bool) -> None:
        """End the hold-up: deliver what has come together, or break the connections that have any.

        Broken ones are those whose client or server sent something in vain, or hung up.
        """
        self.held_up.discard(way)
        for pipe in [pipe for pipe in self.pipes if pipe.way is way]:
            if deliver or not pipe.waits:
                pipe.deliver()
            else:
                pipe.break_off()


class Pipe:
    """One direction of one connection: from an end that calls `send` to the transport `target`."""

    def __init__(self, weather: Weather, way: Way) -> None:
        self.way = way
        self.target: asyncio.Transport | None = None
        self._weather = weather
        # With the moment from which a piece is due, on the loop's clock.
        self._under_way: deque[tuple[float, bytes | None]] = deque()
        self._last_due = 0.0
        weather.pipes.add(self)

    @property
    def waits(self) -> bool:
        """Whether anything is under way to somebody who is there."""
        return bool(self._under_way) and self.target is not None

    def send(self, data: bytes | None) -> None:
        """Send a piece of data on its way, or the end of the connection, which is None."""
        weather = self._weather
        if weather.is_fine and not self._under_way and self.target is not None and data is not None:
            self.target.write(data)
            return
        delay = weather.dice.uniform(0, weather.longest_delay)
        self._last_due = max(self._last_due, asyncio.get_running_loop().time() + delay)
        self._under_way.append((self._last_due, data))
        self.deliver()

    def deliver(self) -> None:
        """Hand over what is due, if there is a way and somebody there."""
        if self.target is None or self.way in self._weather.held_up:
            return
        loop = asyncio.get_running_loop()
        while self._under_way and self._under_way[0][0] <= loop.time():
            _, data = self._under_way.popleft()
            if data is None:
                self.target.close()
                self._weather.pipes.discard(self)
            else:
                self.target.write(data)
        if self._under_way:
            loop.call_at(self._under_way[0][0], self.deliver)

    def break_off(self) -> None:
        """Forget what is under way, and cut the connection."""
        self._under_way.clear()
        self._weather.pipes.discard(self)
        if self.target is not None:
            self.target.abort()
