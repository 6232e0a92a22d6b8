"""Says on standard error which part runs, for how long, and how much is left.

How long a part takes is known from the last time that it ran. A terminal shows a bar; elsewhere a
line is written every ten seconds, and whenever something new begins.
"""

import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from tqdm import tqdm

EVERY = 10.0  # seconds between lines
ON_TERMINAL = 0.2
UNKNOWN = 60.0  # seconds that a part is expected to take if it has never run
FORMAT = "{percentage:3.0f} % {bar:20} {desc}"


class Progress:
    """Of the `parts`, in the order in which they run; `took` is how many seconds they once took."""

    def __init__(self, parts: Sequence[str], took: Mapping[str, float]) -> None:
        self._parts = parts
        self._expected = {part: took.get(part) or UNKNOWN for part in parts}
        self._doing = ""
        self._bar: tqdm[Any] = tqdm(
            total=sum(self._expected.values()), bar_format=FORMAT, disable=None, leave=False
        )

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Show progress while this part runs."""
        began = time.monotonic()
        over = threading.Event()
        self._doing = ""

        def show() -> None:
            self._show(name, began)
            while not over.wait(EVERY if self._bar.disable else ON_TERMINAL):
                self._show(name, began)

        thread = threading.Thread(target=show, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def doing(self, what: str) -> None:
        """Say what the part does now."""
        self._doing = f" ({what})"
        if self._bar.disable:
            self.say(f"  {what}")

    def say(self, text: str, file: TextIO | None = None) -> None:
        """Write lines, by default to standard error; a bar stays below them."""
        file = file or sys.stderr
        self._bar.write(text, file=file)
        file.flush()

    def close(self) -> None:
        self._bar.close()

    def line(self, name: str, seconds: float) -> str:
        """For a part that has been running for so many seconds."""
        place = self._parts.index(name)
        left = sum(self._expected[part] for part in self._parts[place:])
        left -= min(seconds, self._expected[name])
        return (
            f"[{place + 1}/{len(self._parts)}] {name}: {seconds:.0f} s of some"
            f" {self._expected[name]:.0f}{self._doing}; {duration(left)} left"
        )

    def _show(self, name: str, began: float) -> None:
        seconds = time.monotonic() - began
        line = self.line(name, seconds)
        if self._bar.disable:
            self.say(line)
            return
        before = self._parts[: self._parts.index(name)]
        self._bar.n = sum(self._expected[part] for part in before)
        self._bar.n += min(seconds, self._expected[name])
        self._bar.set_description_str(line)


def duration(seconds: float) -> str:
    """For a person: in minutes, or in seconds if there are few."""
    return f"some {seconds:.0f} s" if seconds < 90 else f"some {seconds / 60:.0f} minutes"
