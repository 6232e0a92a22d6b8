"""A clock for readers that moves only when a test moves it."""

from collections.abc import Callable
from typing import Any


class Clock:
    """In place of the module `time`."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def goes(self, seconds: float, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same call, during which the clock moves by so many seconds."""

        def slow(*arguments: Any) -> Any:
            self.now += seconds
            return call(*arguments)

        return slow
