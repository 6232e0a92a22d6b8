"""Visits every state that can be reached, the nearest first, and tells how one comes about.

`explore` looks for a state in which an invariant does not hold. Where there is none, it shows that
from every state, with nothing more going wrong, the system comes to rest and is then complete.
"""

import gc
import inspect
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from specification.states import Invariants, Step

MOST_STEPS = 1000  # to a rest


class System(ABC):
    """What can be explored. States are hashable; a step's docstring tells it in a story."""

    start: Any
    invariants: Invariants

    @abstractmethod
    def choices(self, s: Any) -> Iterator[Step]:
        """All steps within the bound."""

    @abstractmethod
    def progress(self, s: Any) -> Iterator[Step]:
        """What goes on by itself, the most urgent first."""

    @abstractmethod
    def is_complete(self, s: Any) -> bool:
        """Whether nothing is missing, where nothing goes on."""

    def canonical(self, s: Any) -> Any:
        """The one that stands for all states that differ only in who is who."""
        return s


class Result(NamedTuple):
    """`broken` is the invariant that does not hold at the end of the shortest such `story`."""

    states: int
    transitions: Counter[str]
    depth: int
    seconds: float
    broken: str = ""
    story: Sequence[str] = ()


def explore(system: System, tell: Callable[[int, int], None] | None = None) -> Result:
    """Explore all of it; `tell` is called now and then with states and depth."""
    began, start = time.monotonic(), system.canonical(system.start)
    parents: dict[Any, Any] = {start: None}
    taken: Counter[str] = Counter()
    frontier, depth = [start], 0

    def result(broken: str = "", story: Any = None) -> Result:
        seconds = time.monotonic() - began
        return Result(len(parents), taken, depth, seconds, broken, story or ())

    gc.disable()  # a state has no cycles
    try:
        while frontier:
            nearest, frontier = frontier, []
            for state in nearest:
                for step, values in system.choices(state):
                    reached = system.canonical(step(state, *values))
                    taken[step.__name__] += 1
                    if reached not in parents:
                        parents[reached] = state
                        frontier.append(reached)
                        for number, holds in system.invariants.items():
                            if not holds(reached):
                                return result(number, story_of(system, parents, reached))
            depth += 1
            if tell:
                tell(len(parents), depth)
        if stuck := never_at_rest(system, parents):
            return result("liveness", story_of(system, parents, stuck))
        return result()
    finally:
        gc.enable()


def never_at_rest(system: System, states: Any) -> Any:
    """A state from which the most urgent steps don't lead to a complete end; None if all do."""
    good: set[Any] = set()
    for state in states:
        path: list[Any] = []
        now = state
        while now not in good and len(path) < MOST_STEPS:
            path.append(now)
            step, values = next(system.progress(now), (None, ()))
            if step is None:
                break
            now = system.canonical(step(now, *values))
        if len(path) == MOST_STEPS or (now not in good and not system.is_complete(now)):
            return state
        good.update(path)
    return None


def story_of(system: System, parents: dict[Any, Any], state: Any) -> list[str]:
    """The steps to a state, as sentences."""
    way = [state]
    while (before := parents[way[-1]]) is not None:
        way.append(before)
    now, sentences = system.start, []
    for reached in way[-2::-1]:
        for step, values in system.choices(now):
            after = step(now, *values)
            if system.canonical(after) == reached:
                sentences.append(sentence(step, values))
                now = after
                break
    return sentences


def sentence(step: Any, values: tuple[Any, ...]) -> str:
    names = list(inspect.signature(step).parameters)[1:]
    return str(step.__doc__).format(**dict(zip(names, values, strict=True)))
