"""The clients that chaos runs, what they send, and what they note."""

import re
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lab.chaos.clients import Crowd
from lab.chaos.journal import Journal
from tests.support.world import eventually

ENOUGH = 300  # rides; the rarest manner is that of one in fifty
RATE = 400.0  # a second


class Api(ThreadingHTTPServer):
    """Refuses each ride once, and then takes it once; `whole` is how often each key came."""

    daemon_threads = True

    def __init__(self) -> None:
        self.whole: Counter[str] = Counter()
        self.rides: dict[str, int] = {}
        self.guard = threading.Lock()
        super().__init__(("127.0.0.1", 0), Handler)

    def take(self, key: str) -> int | None:
        """The ride's number; None the first time."""
        with self.guard:
            self.whole[key] += 1
            return None if self.whole[key] == 1 else self.rides.setdefault(key, len(self.rides))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Api

    def do_POST(self) -> None:
        body = self.rfile.read(length := int(self.headers["content-length"]))
        if len(body) < length:
            self.close_connection = True
            return
        ride = self.server.take(self.headers["idempotency-key"])
        found = re.fullmatch(r"distance=(.*)", body.decode())
        assert found
        self._answer(503 if ride is None else 201, ride, found[1])

    def _answer(self, status: int, ride: int | None, distance: str) -> None:
        said = f'{{"ride": {{"id": {ride or 0}, "distance": {distance}}}}}'.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def test_clients_post_until_they_are_answered_and_note_what_they_sent_and_got() -> None:
    with Api() as api:
        threading.Thread(target=api.serve_forever, daemon=True).start()
        journal = Journal()
        crowd = Crowd(7, api.server_address[1], RATE, journal)
        crowd.start()
        eventually(lambda: journal.answered >= ENOUGH, "rides", 60)
        crowd.end()
        api.shutdown()
    asks = {ask.key or "": ask for ask in journal.asks}
    assert journal.troubles == []
    assert len({ask.distance for ask in journal.asks}) == len(asks) == len(journal.asks)
    answers = {key: [answer.ride for answer in ask.answers] for key, ask in asks.items()}
    for key, ask in asks.items():
        assert {*answers[key]} <= {api.rides.get(key)}
        assert all(a.distance == ask.distance and a.sent < a.came for a in ask.answers)
        assert bool(ask.answers) == (ask.whole and not ask.given_up)
        assert api.whole[key] == 0 or ask.whole  # what was sent by half never counts
    assert any(len(rides) == 2 for rides in answers.values())  # once more, although answered
    assert any(ask.given_up for ask in journal.asks)
    assert any(not ask.whole for ask in journal.asks)
