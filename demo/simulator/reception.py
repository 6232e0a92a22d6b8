"""Where the customer receives: a small HTTP server at RECEIPT_URL, within the simulator's loop."""

import asyncio
from collections.abc import Callable
from urllib.parse import urlsplit

import h11

from demo.simulator.customer import Reply

MOST = 64 * 1024  # bytes of a request's body

Receive = Callable[[dict[str, str], bytes], Reply]


async def open_at(url: str, receive: Receive) -> asyncio.Server:
    """Listen at the host, port and path of `url`; `receive` judges each POST.

    Raises OSError where that is impossible: the port is taken, or the host is another machine.
    """
    parts = urlsplit(url)
    if parts.scheme != "http":
        raise OSError("only http is received here")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return await asyncio.get_running_loop().create_server(
        lambda: _Conversation(path, receive), parts.hostname, parts.port or 80
    )


class _Conversation(asyncio.Protocol):
    """One connection: request after request, each answered before the next is read."""

    transport: asyncio.Transport

    def __init__(self, path: str, receive: Receive) -> None:
        self._path = path.encode()
        self._receive = receive
        self._http = h11.Connection(h11.SERVER)
        self._request: h11.Request | None = None
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 (a TCP server's)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._http.receive_data(data)
        self._read()

    def _read(self) -> None:
        try:
            while not self.transport.is_closing():
                event = self._http.next_event()
                match event:
                    case h11.Request():
                        self._request, self._body = event, b""
                    case h11.Data():
                        self._body += event.data
                        if len(self._body) > MOST:
                            self._answer(Reply(413))
                            self.transport.close()
                    case h11.EndOfMessage():
                        self._judge()
                    case h11.ConnectionClosed():
                        self.transport.close()
                    case _:  # it needs more data, or the answer is still to come
                        return
        except h11.RemoteProtocolError as error:
            if self._http.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
                self._answer(Reply(error.error_status_hint))
            self.transport.close()

    def _judge(self) -> None:
        assert self._request is not None  # noqa: S101 (h11 saw its end)
        if self._request.target != self._path:
            reply = Reply(404)
        elif self._request.method != b"POST":
            reply = Reply(405, headers=(("Allow", "POST"),))
        else:
            headers = {
                key.decode(): value.decode("latin-1") for key, value in self._request.headers
            }
            reply = self._receive(headers, self._body)
        if reply.delay:
            self.transport.pause_reading()
            asyncio.get_running_loop().call_later(reply.delay, self._continue, reply)
        else:
            self._answer(reply)

    def _continue(self, reply: Reply) -> None:
        if not self.transport.is_closing():
            self._answer(reply)
            self.transport.resume_reading()
            self._read()

    def _answer(self, reply: Reply) -> None:
        body = reply.text.encode()
        headers = [*reply.headers]
        if reply.status != 204:
            headers.append(("Content-Length", str(len(body))))
        sent = self._http.send(h11.Response(status_code=reply.status, headers=headers, reason=b""))
        # In one packet: in two, the second would wait for the acknowledgement of the first.
        self.transport.write(
            (sent or b"")
            + (self._http.send(h11.Data(data=body)) or b"")
            + (self._http.send(h11.EndOfMessage()) or b"")
        )
        if self._http.our_state is h11.MUST_CLOSE:
            self.transport.close()
        elif self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
