"""Something that works hard, in a process of its own, so that it takes no time from the proxies.

It lives on that process' event loop, and is asked by the names of its methods, which are
coroutines. It ends with the one who started it, however that one ends.
"""

import asyncio
import gc
import multiprocessing
import resource
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from demo.embedded.failures import ServerFailed

Line = Connection  # both ways
MEMORY = "memory"


def most_memory() -> int:
    """Bytes that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Apart:
    """`make(*values)`, in a process of its own; both must be picklable."""

    def __init__(self, make: Callable[..., Any], *values: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._made = make.__name__
        self._line, its = context.Pipe()
        self._guard = threading.Lock()
        self._process = context.Process(target=_run, args=(its, make, values), daemon=True)
        self._process.start()
        its.close()

    def ask(self, name: str, *values: Any) -> Any:
        """What its method `name` returns; raises what that raises, or ServerFailed."""
        with self._guard:
            try:
                self._line.send((name, values))
                answer, error = self._line.recv()
            except (EOFError, OSError):
                raise ServerFailed(f"a process of chaos' own has ended: {self._made}") from None
        if error is not None:
            raise error
        return answer

    @property
    def memory(self) -> int:
        """Bytes that it has had at most."""
        return int(self.ask(MEMORY))

    def end(self) -> None:
        self._line.close()
        self._process.join()


def _run(line: "Line[Any, Any]", make: Callable[..., Any], values: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with the line
    gc.disable()  # it keeps what it notes, and looking through that would take seconds
    asyncio.run(_live(line, make, values))


async def _live(line: "Line[Any, Any]", make: Callable[..., Any], values: tuple[Any, ...]) -> None:
    loop = asyncio.get_running_loop()
    asked: asyncio.Queue[tuple[str, tuple[Any, ...]] | None] = asyncio.Queue()

    def receive() -> None:
        try:
            asked.put_nowait(line.recv())
        except (EOFError, OSError):
            loop.remove_reader(line.fileno())
            asked.put_nowait(None)

    subject = make(*values)
    loop.add_reader(line.fileno(), receive)
    while question := await asked.get():
        name, given = question
        try:
            answer = most_memory() if name == MEMORY else await getattr(subject, name)(*given)
            line.send((answer, None))
        except Exception as error:
            line.send((None, error))
