"""Asking a server without depending on it: whatever hangs, the answer or a reason comes in time.

A server that is stopped takes connections and answers nothing, and a name's look-up may hang in the
system's own library. So each server is asked in a thread of its own, which alone uses the
connection; a question that is not answered in time is given up, and the thread comes back when its
own time-outs end it. Until then further questions are given up as well, after the same time.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

from rocket_rides.errors import Unavailable

NO_ANSWER = "it does not answer"

T = TypeVar("T")


class Asker:
    """Puts questions, one at a time, to whoever `server` names."""

    def __init__(self, server: str) -> None:
        self._questions: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        # A daemon, so that nothing that hangs keeps the process from ending.
        threading.Thread(target=self._run, name=f"asks {server}", daemon=True).start()

    def put(self, question: Callable[[], T]) -> "Future[T]":
        """What `question` will return or raise."""
        answer: Future[T] = Future()
        self._questions.put((question, answer))
        return answer

    def ask(self, question: Callable[[], T], patience: float) -> T:
        """What `question` returns or raises; Unavailable when that takes `patience` seconds."""
        answer = self.put(question)
        try:
            return answer.result(max(0, patience))
        except TimeoutError:
            answer.cancel()
            raise Unavailable(NO_ANSWER) from None

    def close(self) -> None:
        """End the thread once it has nothing to ask."""
        self._questions.put(None)

    def _run(self) -> None:
        while (asked := self._questions.get()) is not None:
            question, answer = asked
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                answer.set_result(question())
            except Exception as error:  # whoever asked raises it
                answer.set_exception(error)
