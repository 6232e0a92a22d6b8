"""A reader's clock, which goes only where a test has something take time."""

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
        """The same call, which takes so long."""

        def slow(*arguments: Any) -> Any:
            self.now += seconds
            return call(*arguments)

        return slow
