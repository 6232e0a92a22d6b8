"""An event loop in a thread of its own, for proxies, clients and the receiver of receipts."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Loop:
    """The loop runs from `start` to `stop`."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        with self._runner:  # at its end, it cancels what still runs
            self._runner.run(self._stopped.wait())

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start the work; returns its future result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the work to its end; returns its result, or raises its exception."""
        return self.begin(work).result()

    def call(self, function: Callable[[], T]) -> T:
        """Call the function on the loop, where nothing else runs meanwhile; returns its result."""

        async def work() -> T:
            return function()

        return self.do(work())

    def stop(self) -> None:
        if self._thread.ident:
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join()
        else:
            self._runner.close()
