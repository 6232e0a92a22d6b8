"""Clients of the API: each posts rides until they are answered, and some behave badly.

Every ride has an Idempotency-Key. Most are posted again and again with the same key until an answer
comes; `Manner` lists the other ways.
"""

import http.client
import json
import random
import socket
import threading
import time
from collections import deque
from contextlib import suppress
from decimal import Decimal
from enum import Enum

from chaos.journal import Answer, Ask, Journal
from rocket_rides.waiting import delays

HOST = "127.0.0.1"
TIMEOUT = 4.0  # seconds; the API answers within two unless it is stopped
CATCH_UP = 1.0  # seconds a client may fall behind its schedule before it skips rides
AGAIN_AFTER = 5.0  # seconds; a restore may happen in between
PATIENCE = 60.0  # seconds it keeps asking after the faults have ended
FORM = "application/x-www-form-urlencoded"


class Manner(Enum):
    """How a client posts one ride."""

    PATIENT = "until it is answered"
    AGAIN = "until it is answered, and once more seconds later, as if it had not been"
    TWICE = "hangs up before the answer, and posts again at once"
    GONE = "hangs up before the answer, for good: one ride at most"
    HALF_BODY = "announces a length and sends less: no ride"
    HALF_HEAD = "stops in the middle of the headers: no ride"
    HALF_THEN_WHOLE = "stops half-way, then posts until it is answered"


SHARES = {
    Manner.PATIENT: 0.79,
    Manner.AGAIN: 0.05,
    Manner.TWICE: 0.04,
    Manner.GONE: 0.04,
    Manner.HALF_BODY: 0.03,
    Manner.HALF_HEAD: 0.02,
    Manner.HALF_THEN_WHOLE: 0.03,
}


class Client(threading.Thread):
    """Posts `rate` rides a second to the API at `port`, until `end`."""

    def __init__(self, name: str, port: int, rate: float, journal: Journal) -> None:
        super().__init__(name=name, daemon=True)
        self._port = port
        self._rate = rate
        self._journal = journal
        self._dice = random.Random(name)
        self._ending = threading.Event()
        self._give_up_at = float("inf")
        self._again: deque[tuple[float, Ask]] = deque()  # rides to post once more, and when
        self._http = http.client.HTTPConnection(HOST, port, timeout=TIMEOUT)

    def run(self) -> None:
        due = time.monotonic()
        while not self._journal.full:
            due = max(due, time.monotonic() - CATCH_UP) + self._dice.expovariate(self._rate)
            if self._ending.wait(max(0, due - time.monotonic())):
                break
            self._ride()
            while self._again and self._again[0][0] < time.monotonic():
                self._post(self._again.popleft()[1])
        for _, ask in self._again:
            self._post(ask)
        self._http.close()

    def end(self, patience: float = PATIENCE) -> None:
        """Request no more rides; the thread ends when those requested are answered.

        After `patience` seconds the client gives up and leaves a ride unanswered.
        """
        self._give_up_at = time.monotonic() + patience
        self._ending.set()

    def _ride(self) -> None:
        ask = self._journal.ask(self.name)
        manner = self._dice.choices(list(SHARES), list(SHARES.values()))[0]
        head, body = request(ask)
        if manner is Manner.HALF_BODY or manner is Manner.HALF_THEN_WHOLE:
            self._send(head + body[: -self._dice.randint(1, len(body) - 1)])
        elif manner is Manner.HALF_HEAD:
            self._send(head[: self._dice.randint(10, len(head) - 3)])
        elif manner is Manner.TWICE or manner is Manner.GONE:
            ask.whole = True
            ask.given_up = manner is Manner.GONE
            self._send(head + body)
        if manner in (Manner.PATIENT, Manner.AGAIN, Manner.TWICE, Manner.HALF_THEN_WHOLE):
            self._post(ask)
        if manner is Manner.AGAIN:
            self._again.append((time.monotonic() + AGAIN_AFTER, ask))

    def _send(self, data: bytes) -> None:
        """Send `data` and hang up, at once or a moment later."""
        with (
            suppress(OSError),
            socket.create_connection((HOST, self._port), timeout=TIMEOUT) as half,
        ):
            half.sendall(data)
            time.sleep(self._dice.choice([0, 0.002, 0.02]))

    def _post(self, ask: Ask) -> None:
        """Post the ride until it is answered. A 503 or a lost connection is not an answer."""
        ask.whole = True
        headers = {"Content-Type": FORM, "Idempotency-Key": ask.key or ""}
        for delay in delays(0.02, 0.5):
            sent = time.monotonic()
            try:
                self._http.request("POST", "/rides", f"distance={ask.distance}", headers)
                answer = self._http.getresponse()
                content = answer.read()
            except (OSError, http.client.HTTPException):
                self._http.close()  # it reconnects by itself
            else:
                if answer.status == 201:
                    ask.answers.append(read(content, sent))
                    return
                if answer.status != 503:
                    self._journal.troubles.append(
                        f"the ride of {ask.distance} m was answered with {answer.status}: "
                        f"{content[:200].decode(errors='replace')}"
                    )
                    if answer.status < 500:
                        return
            if time.monotonic() > self._give_up_at:
                return
            time.sleep(delay)


def request(ask: Ask) -> tuple[bytes, bytes]:
    """The head and the body of a POST for this ride."""
    body = f"distance={ask.distance}".encode()
    head = (
        f"POST /rides HTTP/1.1\r\nHost: {HOST}\r\nIdempotency-Key: {ask.key}\r\n"
        f"Content-Type: {FORM}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode(), body


def read(content: bytes, sent: float) -> Answer:
    """The ride in a 201 that has just come, for a request sent at `sent`."""
    ride = json.loads(content, parse_float=Decimal)["ride"]
    return Answer(ride["id"], Decimal(ride["distance"]), sent, time.monotonic())
