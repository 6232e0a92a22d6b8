"""Interim answers (1xx), which a receiver may send before the one that counts: only so many.

aiohttp passes over them without a limit, and has no setting for one. A receiver that sends nothing
else, `103 Early Hints` say, kept a worker's processor busy for as long as an attempt may take, with
500,000 heads a second: 4.9 s of 5. Ended at the first head too many, it costs 0.02 s, for what came
together with that one in one read of the socket.
"""

from itertools import count

import aiohttp
from aiohttp.connector import Connection

MOST = 20  # heads; one or two have a use


class TooMany(aiohttp.ClientError):
    """more than MOST interim answers"""


class Answer(aiohttp.ClientResponse):
    """A `response_class` for aiohttp: an answer with at most MOST interim ones before it."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """Read up to the end of the head that counts. Raises TooMany.

        aiohttp's own does so by one `read` of the protocol for each head.
        """
        protocol, heads = connection.protocol, count()
        if protocol is None:  # lost while the request was sent, and the traces' hooks say why
            return await super().start(connection)
        read = protocol.read

        async def read_next() -> object:
            if next(heads) > MOST:
                raise TooMany(f"more than {MOST} interim answers (1xx)")
            return await read()

        protocol.read = read_next  # type: ignore[method-assign, assignment]
        try:
            await super().start(connection)
        finally:
            del protocol.read
        return self
