"""POST requests to one URL, many at a time on one thread, by libcurl's multi interface.

It costs a fraction of what a client written in Python does. Connections and handles are used again.
libcurl says which sockets and which time-out it waits for; the waiting itself is ours, so that
something else can end it. The time limit is ours too: libcurl would have it pass before it reads an
answer that came in time, when nobody asked it in between.
"""

import os
import select
import threading
import time
from contextlib import suppress
from typing import Any, Generic, TypeVar

import certifi
import pycurl

from consumers.receipts.verdict import NOT_HTTP, Answer, Kind, Verdict, in_one_line, judge

# Bytes of an answer's body that are read before the connection is closed, and that are kept.
MOST_READ, MOST_KEPT = 64 * 1024, 1024

LONGEST_CLOSE = 1.0

NOT_TAKEN = frozenset({pycurl.E_COULDNT_RESOLVE_HOST, pycurl.E_COULDNT_CONNECT})
# libcurl's words for these would be a riddle: HTTP/0.9, weird server reply.
GARBAGE = frozenset({pycurl.E_UNSUPPORTED_PROTOCOL, pycurl.E_FTP_WEIRD_SERVER_REPLY})

Tag = TypeVar("Tag")


def options(url: str, timeout: float) -> dict[int, Any]:
    """How each request is made: nothing but the URL says where to, and with which password.

    A certificate is checked against the file that SSL_CERT_FILE names, else against certifi's.
    """
    return {
        pycurl.URL: url,
        pycurl.POST: 1,
        pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
        pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_1_1,
        pycurl.HTTP09_ALLOWED: 0,  # what has no status line is no answer
        pycurl.FOLLOWLOCATION: 0,
        pycurl.PROXY: "",  # also none from the environment
        pycurl.NETRC: pycurl.NETRC_IGNORED,
        pycurl.CAINFO: os.environ.get("SSL_CERT_FILE") or certifi.where(),
        pycurl.SSL_VERIFYPEER: 1,
        pycurl.SSL_VERIFYHOST: 2,
        pycurl.CONNECTTIMEOUT_MS: max(1, int(timeout * 1000)),  # the default might be longer
        pycurl.NOSIGNAL: 1,
        pycurl.USERAGENT: "rocket-rides",
    }


class _Handle:
    """One request at a time."""

    def __init__(self, settings: dict[int, Any]) -> None:
        self.curl = pycurl.Curl()
        for option, value in settings.items():
            self.curl.setopt(option, value)
        self.curl.setopt(pycurl.WRITEFUNCTION, self._receive)

    def prepare(self, headers: list[str], body: bytes) -> None:
        self.begins = b""
        self.received = 0
        self.curl.setopt(pycurl.HTTPHEADER, headers)
        self.curl.setopt(pycurl.POSTFIELDS, body)

    def _receive(self, data: bytes) -> int:
        if len(self.begins) < MOST_KEPT:
            self.begins += data[:MOST_KEPT]
        self.received += len(data)
        return len(data) if self.received <= MOST_READ else 0  # 0 ends the transfer

    def verdict(self, code: int, message: str) -> Verdict:
        """What became of the request, by libcurl's result.

        Once the head of an answer is complete, its status counts, whatever becomes of the rest.
        """
        about = self.curl.getinfo
        if self.received or code in (pycurl.E_OK, pycurl.E_PARTIAL_FILE):
            status = about(pycurl.RESPONSE_CODE)
            if 200 <= status < 300:
                return judge(Answer(status))
            redirect = about(pycurl.REDIRECT_URL) or ""
            return judge(Answer(status, self.begins, about(pycurl.RETRY_AFTER), redirect))
        if code in GARBAGE:
            return Verdict(Kind.RETRY, NOT_HTTP)
        reason = in_one_line(message) or pycurl.easy_strerror(code)
        # libcurl itself tries again, on a new connection, when one that was kept turns out to be
        # dead; then the size counts what was sent on the dead one.
        unsent = code in NOT_TAKEN or about(pycurl.REQUEST_SIZE) == 0
        return Verdict(Kind.AWAY if unsent else Kind.RETRY, reason)


class Transfers(Generic[Tag]):
    """Up to `most` requests under way; each has a tag by which the caller knows it.

    One that takes longer than `timeout` seconds is given up, once what has come in is read.
    """

    def __init__(self, settings: dict[int, Any], most: int, timeout: float) -> None:
        self._settings = settings
        self._most = most
        self._timeout = timeout
        self._free: list[_Handle] = []
        # In the order in which they began. The third is when to give up, on the monotonic clock.
        self._busy: dict[pycurl.Curl, tuple[_Handle, Tag, float]] = {}
        self._ended: list[tuple[Tag, Verdict]] = []
        self._sockets = select.epoll()
        self._deadline: float | None = None  # libcurl's next time-out, on the monotonic clock
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, most)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_deadline)

    @property
    def room(self) -> int:
        return self._most - len(self._busy)

    def begin(self, tag: Tag, headers: list[str], body: bytes) -> None:
        handle = self._free.pop() if self._free else _Handle(self._settings)
        handle.prepare(headers, body)
        self._multi.add_handle(handle.curl)
        self._busy[handle.curl] = handle, tag, time.monotonic() + self._timeout

    def ended(self, wait: float, wake: int | None) -> list[tuple[Tag, Verdict]]:
        """Those that have ended since the last call.

        Waits up to `wait` seconds for one, or until the file descriptor `wake` is readable.
        """
        until = time.monotonic() + wait
        if wake is not None:
            self._sockets.register(wake, select.EPOLLIN)
        try:
            while not self._work(until, wake):
                pass
        finally:
            if wake is not None:
                self._sockets.unregister(wake)
        ended, self._ended = self._ended, []
        return ended

    def cancel(self) -> list[Tag]:
        """Give up all that is under way, and return it; the connections are closed."""
        cancelled = list(self._busy.values())
        self._busy.clear()
        for handle, _, _ in cancelled:
            self._multi.remove_handle(handle.curl)
            self._free.append(handle)
        return [tag for _, tag, _ in cancelled]

    def close(self) -> None:
        """Give up all, and close all connections. Takes LONGEST_CLOSE seconds at most.

        libcurl would wait for a name server that does not answer, for about ten seconds; a process
        that is to end leaves that to a thread, which ends with it.
        """
        self.cancel()
        closing = threading.Thread(target=self._multi.close, daemon=True)
        closing.start()
        closing.join(LONGEST_CLOSE)
        if not closing.is_alive():
            for handle in self._free:
                handle.curl.close()
            self._sockets.close()

    def _work(self, until: float, wake: int | None) -> bool:
        """Have libcurl deal with what is ready next; whether there is nothing more to wait for."""
        next_event = min(until, self._give_up_at)
        if self._deadline is not None:
            next_event = min(next_event, self._deadline)
        woken = False
        for fd, events in self._sockets.poll(max(0.0, next_event - time.monotonic())):
            if fd == wake:
                woken = True
            else:
                self._multi.socket_action(fd, _for_curl(events))
        now = time.monotonic()
        if self._deadline is not None and self._deadline <= now:
            self._deadline = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._collect()
        while self._give_up_at <= now:
            late = f"timed out after {self._timeout:g} s"
            self._end(next(iter(self._busy)), pycurl.E_OPERATION_TIMEDOUT, late)
        return bool(self._ended) or woken or now >= until

    @property
    def _give_up_at(self) -> float:
        """When the oldest request has taken too long."""
        return next(iter(self._busy.values()))[2] if self._busy else float("inf")

    def _collect(self) -> None:
        more = 1
        while more:
            more, succeeded, failed = self._multi.info_read()
            for curl in succeeded:
                self._end(curl, pycurl.E_OK, "")
            for curl, code, message in failed:
                self._end(curl, code, message)

    def _end(self, curl: pycurl.Curl, code: int, message: str) -> None:
        handle, tag, _ = self._busy.pop(curl)
        self._ended.append((tag, handle.verdict(code, message)))
        self._multi.remove_handle(curl)
        self._free.append(handle)

    def _watch(self, what: int, fd: int, _multi: object, _assigned: object) -> None:
        """libcurl waits for something else of this socket than before."""
        with suppress(FileNotFoundError):  # it is closed, or new
            if what == pycurl.POLL_REMOVE:
                self._sockets.unregister(fd)
            else:
                self._sockets.modify(fd, _for_epoll(what))
            return
        if what != pycurl.POLL_REMOVE:
            self._sockets.register(fd, _for_epoll(what))

    def _set_deadline(self, milliseconds: int) -> None:
        self._deadline = None if milliseconds < 0 else time.monotonic() + milliseconds / 1000


def _for_epoll(what: int) -> int:
    reads = select.EPOLLIN if what & pycurl.POLL_IN else 0
    return reads | (select.EPOLLOUT if what & pycurl.POLL_OUT else 0)


def _for_curl(events: int) -> int:
    reads = pycurl.CSELECT_IN if events & (select.EPOLLIN | select.EPOLLHUP) else 0
    writes = pycurl.CSELECT_OUT if events & select.EPOLLOUT else 0
    return reads | writes | (pycurl.CSELECT_ERR if events & select.EPOLLERR else 0)
