"""Delivers receipts: signs each, posts it to the receiver, and judges what came of it.

An attempt is one POST, signed after Standard Webhooks with the time of this attempt. What the
receiver answers decides, and only that:

* 2xx: it has the receipt. What follows the head of the answer changes nothing.
* 408, 425, 429 and 5xx, no answer in time, a lost connection, an answer that is not HTTP: to be
  tried again. It may have the receipt all the same, and tells the repetition by `webhook-id`.
* Nobody took the request: no address, no connection, no TLS, or none with a certificate for this
  host. That is the same for all receipts, and says nothing against any of them.
* Any other status, redirects too: refused. Another attempt would end in the same way.

On libcurl, which costs a tenth of what a client in Python does, and where a hung connection is no
thread. It is given nothing but the operator's URL: no proxy, no cookies, no password from a file,
no other scheme, no redirect.

A crash in an attempt leaves open whether the receiver has the receipt: it was started, or not.
"""

import os
import select
import time
from collections import deque
from datetime import UTC, datetime
from enum import Enum
from types import TracebackType
from typing import Any, NamedTuple, Self

import certifi
import pycurl
from standardwebhooks import Webhook

from consumers.receipts.receipt import Receipt

# Seconds. A receiver that asks for more is asked again after that many all the same: until then the
# receipt holds the log back.
LONGEST_RETRY_AFTER = 300.0
# Bytes of an answer's body that are read, so that a connection can be used again; and characters of
# it that are told.
MOST_READ, MOST_TOLD = 64 * 1024, 200

TRY_AGAIN = frozenset({408, 425, 429})
NEVER_TAKEN = frozenset(
    {
        pycurl.E_COULDNT_RESOLVE_HOST,
        pycurl.E_COULDNT_CONNECT,
        pycurl.E_SSL_CONNECT_ERROR,
        pycurl.E_PEER_FAILED_VERIFICATION,
        pycurl.E_SSL_CACERT_BADFILE,
    }
)


class Kind(Enum):
    """What an attempt came to."""

    DELIVERED = "delivered"
    RETRY = "retry"
    AWAY = "away"
    REFUSED = "refused"


class Verdict(NamedTuple):
    """What an attempt came to, why, and when to make the next one.

    `reason` is one line of printable text, never empty. `retry_after`, in seconds, is what the
    receiver asked for, at most LONGEST_RETRY_AFTER; None when it named no time.
    """

    kind: Kind
    reason: str
    retry_after: float | None = None


class _Attempt:
    """One request at a time on a handle that is used again and again."""

    def __init__(self, options: dict[int, Any]) -> None:
        self.curl = pycurl.Curl()
        for option, value in options.items():
            self.curl.setopt(option, value)
        self.curl.setopt(pycurl.WRITEFUNCTION, self._read)
        self.receipt: Receipt | None = None

    def prepare(self, receipt: Receipt, body: bytes, headers: list[str]) -> None:
        self.receipt = receipt
        self.begun = b""
        self.read = 0
        self.curl.setopt(pycurl.HTTPHEADER, headers)
        self.curl.setopt(pycurl.POSTFIELDS, body)

    def _read(self, data: bytes) -> int:
        if not self.read:
            self.begun = data[: 4 * MOST_TOLD]
        self.read += len(data)
        return len(data) if self.read <= MOST_READ else 0  # 0 ends the transfer


class Courier:
    """Up to `concurrency` attempts at once, each within `timeout` seconds in all.

    For one thread. `url` and `secret` are as `rocket_rides.settings` takes them. What an `https`
    receiver's certificate is checked against is the file SSL_CERT_FILE, else certifi's.
    """

    def __init__(self, url: str, secret: str, concurrency: int, timeout: float) -> None:
        milliseconds = max(1, int(timeout * 1000))
        self._options: dict[int, Any] = {
            pycurl.URL: url,
            pycurl.POST: 1,
            pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
            pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_1_1,
            pycurl.HTTP09_ALLOWED: 0,  # without a status line it is not an answer
            pycurl.FOLLOWLOCATION: 0,
            pycurl.PROXY: "",
            pycurl.NETRC: pycurl.NETRC_IGNORED,
            pycurl.CAINFO: os.environ.get("SSL_CERT_FILE") or certifi.where(),
            pycurl.SSL_VERIFYPEER: 1,
            pycurl.SSL_VERIFYHOST: 2,
            pycurl.TIMEOUT_MS: milliseconds,
            pycurl.CONNECTTIMEOUT_MS: milliseconds,
            pycurl.NOSIGNAL: 1,
            pycurl.USERAGENT: "rocket-rides",
        }
        self._webhook = Webhook(secret)
        self._concurrency = concurrency
        self._busy: dict[pycurl.Curl, _Attempt] = {}
        self._free: list[_Attempt] = []
        self._ended: deque[tuple[Receipt, Verdict]] = deque()
        self._ready = select.epoll()
        self._deadline: float | None = None  # of libcurl's timer, on the monotonic clock
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, concurrency)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)

    @property
    def room(self) -> int:
        """How many more receipts can be started now."""
        return self._concurrency - len(self._busy)

    def start(self, receipt: Receipt) -> None:
        """Begin one attempt, without waiting. Call it only while there is `room`."""
        body = receipt.body()
        now = int(time.time())
        signature = self._webhook.sign(
            receipt.webhook_id, datetime.fromtimestamp(now, UTC), body.decode()
        )
        attempt = self._free.pop() if self._free else _Attempt(self._options)
        attempt.prepare(
            receipt,
            body,
            [
                "content-type: application/json",
                f"webhook-id: {receipt.webhook_id}",
                f"webhook-timestamp: {now}",
                f"webhook-signature: {signature}",
            ],
        )
        self._busy[attempt.curl] = attempt
        self._multi.add_handle(attempt.curl)

    def finished(self, wait: float, wake: int | None = None) -> list[tuple[Receipt, Verdict]]:
        """All attempts that have ended since the last call.

        Waits up to `wait` seconds for the first, or until the file descriptor `wake` is readable.
        """
        until = time.monotonic() + wait
        if wake is not None:
            self._ready.register(wake, select.EPOLLIN)
        try:
            while not self._step(until, wake):
                pass
        finally:
            if wake is not None:
                self._ready.unregister(wake)
        ended = list(self._ended)
        self._ended.clear()
        return ended

    def _step(self, until: float, wake: int | None) -> bool:
        """Let libcurl work on what is ready; whether the wait is over."""
        now = time.monotonic()
        end = until if self._deadline is None else min(until, self._deadline)
        events = self._ready.poll(max(0.0, end - now))
        woken = False
        for fd, event in events:
            if fd == wake:
                woken = True
            else:
                self._multi.socket_action(fd, _as_curl(event))
        now = time.monotonic()
        if self._deadline is not None and self._deadline <= now:
            self._deadline = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._collect()
        return bool(self._ended) or woken or now >= until

    def _collect(self) -> None:
        left = 1
        while left:
            left, succeeded, failed = self._multi.info_read()
            for curl in succeeded:
                self._end(curl, pycurl.E_OK, "")
            for curl, code, message in failed:
                self._end(curl, code, message)

    def _end(self, curl: pycurl.Curl, code: int, message: str) -> None:
        attempt = self._busy.pop(curl)
        self._ended.append((attempt.receipt, _verdict(attempt, code, message)))
        self._multi.remove_handle(curl)
        self._free.append(attempt)

    def _watch(self, what: int, fd: int, _multi: object, _data: object) -> None:
        if what == pycurl.POLL_REMOVE:
            self._ready.unregister(fd)
            return
        wanted = 0
        if what & pycurl.POLL_IN:
            wanted |= select.EPOLLIN
        if what & pycurl.POLL_OUT:
            wanted |= select.EPOLLOUT
        try:
            self._ready.modify(fd, wanted)
        except FileNotFoundError:
            self._ready.register(fd, wanted)

    def _set_timer(self, milliseconds: int) -> None:
        self._deadline = None if milliseconds < 0 else time.monotonic() + milliseconds / 1000


def _as_curl(event):
    mask = 0
    if event & (select.EPOLLIN | select.EPOLLHUP): mask |= pycurl.CSELECT_IN
    if event & select.EPOLLOUT: mask |= pycurl.CSELECT_OUT
    if event & select.EPOLLERR: mask |= pycurl.CSELECT_ERR
    return mask


def _verdict(attempt: _Attempt, code: int, message: str) -> Verdict:
    status = attempt.curl.getinfo(pycurl.RESPONSE_CODE)
    if code == 0 and 200 <= status < 300:
        return Verdict(Kind.DELIVERED, f"status {status}")
    return Verdict(Kind.RETRY, f"{code} {message} {status}")
