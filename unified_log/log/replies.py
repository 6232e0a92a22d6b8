"""Replies of Redis in bounded memory, whatever somebody else has appended to the log.

No command tells an entry's size, or reads a part of it: who reads the log is sent all of an entry,
and of all that follow it up to COUNT. So a reply larger than any batch of records is read as it
arrives, and its long strings are cut. An entry that was cut is malformed.

This reaches into redis-py's parser, which would keep all of a reply, and several copies: at an
entry of 100 MB a reader grew from 90 MB to 1 GB, and did not get past it. With this, it passes one
of 510 MB within 160 MB. A read of 2,000 records costs 1.7 ms of processor time instead of 1.6.
"""

import socket
from collections import deque
from collections.abc import Iterator
from typing import Any

import hiredis
import redis
from redis._parsers.hiredis import NOT_ENOUGH_DATA, _HiredisParser
from redis.exceptions import InvalidResponse

from unified_log.log.entries import CUT_LONGER, MORE, cut

LARGEST = 20_000_000  # bytes; the largest batch of records takes 18 MB
# In a larger reply. An array that begins with a string is one entry's fields, or something short.
MOST_STRINGS = 64
STRING = ord("$")
SHORT = 64  # bytes of each string, once a larger reply has left LARGEST of them in memory


class BoundedParser(_HiredisParser):
    """Reads one reply at a time, as redis-py asks for them."""

    was_cut = False  # the last reply
    _sock: socket.socket

    def read_response(self, *_: object, **__: object) -> Any:
        """The next reply, cut if it is too large. Raises OSError and redis.ConnectionError."""
        reader, self.was_cut = self._reader, False
        if reader is None:
            raise redis.ConnectionError("the connection is closed")
        reply = reader.gets(False)
        if reply is NOT_ENOUGH_DATA:
            chunk = self._receive()
            reader.feed(chunk)
            reply = reader.gets(False)
            if reply is NOT_ENOUGH_DATA:  # most replies come in one piece
                reply = self._of_pieces(chunk)
        if isinstance(reply, redis.ConnectionError):
            raise reply
        return reply

    def _of_pieces(self, first: bytes) -> Any:
        """Read on, and keep the pieces in case the reply is too large."""
        received, size, reply = deque([first]), len(first), NOT_ENOUGH_DATA
        while reply is NOT_ENOUGH_DATA:
            received.append(self._receive())
            size += len(received[-1])
            if size > LARGEST:
                self.was_cut = True
                return self._cut(received)
            self._reader.feed(received[-1])
            reply = self._reader.gets(False)
        return reply

    def _cut(self, received: deque[bytes]) -> Any:
        """Read a reply again from its beginning, and cut it."""
        self._reader = hiredis.Reader(
            protocolError=InvalidResponse,
            replyError=self.parse_error,
            notEnoughData=NOT_ENOUGH_DATA,
        )
        cutting = _Cutting(self._chunks(received))
        reply = cutting.reply()
        self._reader.feed(cutting.rest)
        return reply

    def _chunks(self, received: deque[bytes]) -> Iterator[bytes]:
        while received:
            yield received.popleft()
        while True:
            yield self._receive()

    def _receive(self) -> bytes:
        if chunk := self._sock.recv(self.socket_read_size):
            return chunk
        raise redis.ConnectionError("Connection closed by server.")


class _Cutting:
    """Reads one reply, in RESP2, from pieces of what the server sends."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._data, self._at = b"", 0
        self._room = LARGEST

    @property
    def rest(self) -> bytes:
        """What was received after the reply."""
        return self._data[self._at :]

    def reply(self) -> Any:
        line = self._line()
        kind, value = line[:1], line[1:]
        if kind == b"$":
            return self._string(int(value))
        if kind == b"*":
            return self._array(int(value))
        return int(value) if kind == b":" else value

    def _array(self, length: int) -> list[Any] | None:
        if length < 0:
            return None
        found: list[Any] = []
        for number in range(length):
            if number >= MOST_STRINGS and not isinstance(found[0], list):
                self._pass_over(length - number)
                return [*found, MORE % length]
            found.append(self.reply())
        return found

    def _pass_over(self, number: int) -> None:
        """Drop so many replies. Of short strings there may be millions: a call for each is slow."""
        room, data, at = self._room, self._data, self._at
        for _ in range(number):
            end = data.find(b"\r\n", at)
            if end >= 0 and data[at] == STRING:
                after = end + 4 + int(data[at + 1 : end])
                if end + 4 <= after <= len(data):
                    at = after
                    continue
            self._at = at
            self.reply()
            data, at = self._data, self._at
        self._room, self._at = room, at

    def _string(self, length: int) -> bytes | None:
        if length < 0:
            return None
        longest = CUT_LONGER if self._room > 0 else SHORT
        taken = self._take(min(length, longest))
        self._skip(length - len(taken) + 2)
        taken = cut(taken, length, longest)
        self._room -= len(taken)
        return taken

    def _line(self) -> bytes:
        while (end := self._data.find(b"\r\n", self._at)) < 0:
            self._receive()
        line, self._at = self._data[self._at : end], end + 2
        return line

    def _take(self, length: int) -> bytes:
        while len(self._data) - self._at < length:
            self._receive()
        self._at += length
        return self._data[self._at - length : self._at]

    def _skip(self, length: int) -> None:
        while (here := len(self._data) - self._at) < length:
            length -= here
            self._at = len(self._data)
            self._receive()
        self._at += length

    def _receive(self) -> None:
        self._data, self._at = self._data[self._at :] + next(self._chunks), 0
