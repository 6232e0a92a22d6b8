"""Visits every reachable state, breadth first, and tells the steps that lead to one.

`explore` looks for a state in which an invariant does not hold. Where there is none, it checks that
every state, once no step by chance is taken any more, comes to rest in a state that is complete.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import msgspec

T = TypeVar("T")
Step = Callable[..., Any]
Way = tuple[Step, tuple[Any, ...], Any]  # a step, its values, and what it leads to
Onward = dict[Any, Any]  # by visited state: what `System.onward` returns
Seen = dict[Any, tuple[Any, Step, tuple[Any, ...]] | None]  # by state: how it came about


class Refused(Exception):
    """The protocol does not allow this step in this state."""


class Value(msgspec.Struct, frozen=True, gc=False, order=True, cache_hash=True):
    """Immutable, hashable, and ordered field by field."""

    def but(self, **changes: Any) -> Self:
        return msgspec.structs.replace(self, **changes)


def require(allowed: T | None) -> T:
    """What it is given, unless that is false."""
    if not allowed:
        raise Refused
    return allowed


def named(items: Iterable[Any], name: int) -> Any:
    return require(next((item for item in items if item.name == name), None))


def swap(items: tuple[T, ...], old: T, *new: T) -> tuple[T, ...]:
    """The items, with `new` in the place of `old`."""
    at = items.index(old)
    return (*items[:at], *new, *items[at + 1 :])


class System:
    """A transition system. Its steps are the methods whose docstring ends without a full stop.

    A step takes a state, and values; `ranges` says by their names what these can be. In its
    docstring, a part of the state goes by its own name. The earlier a step is defined, the more
    urgent it is.
    """

    start: Any
    by_chance: tuple[Step, ...]  # steps that need not happen: of customers, and faults
    # By steps of those: a bounded field to which each always adds. At the bound none is tried.
    spends: ClassVar[dict[Step, str]] = {}
    ranges: Callable[[Any], dict[str, Iterable[Any]]]  # what each value can be
    is_complete: Callable[[Any], bool]  # whether a state at rest lacks nothing
    invariants: ClassVar[dict[str, Callable[..., bool]]]  # by the number of the guarantee

    def __init__(self, broken: str = "", **bounds: int) -> None:
        """`bounds` are the greatest values of fields of a state; `broken` names a sabotage."""
        self.broken, self.bounds = broken, bounds
        methods: list[Step]
        methods = [method for _, method in inspect.getmembers(type(self), inspect.isfunction)]
        steps = [method for method in methods if not (method.__doc__ or ".").endswith(".")]
        steps.sort(key=lambda step: step.__code__.co_firstlineno)
        self.steps = {step: names_of(step) for step in steps}
        self.quiet = {step: self.steps[step] for step in steps if step not in self.by_chance}
        self.spending = [name for name in dict.fromkeys(self.spends.values()) if name in bounds]

    def ways(self, s: Any, steps: dict[Step, list[str]]) -> Iterator[Way]:
        """Which of these steps a state allows."""
        ranges = self.ranges(s)
        spent = [name for name in self.spending if getattr(s, name) >= self.bounds[name]]
        for step, names in steps.items():
            if spent and self.spends.get(step) in spent:
                continue
            for values in product(*[ranges[name] for name in names]):
                try:
                    yield step, values, step(self, s, *values)
                except Refused:
                    continue

    def is_within(self, s: Any) -> bool:
        for name, most in self.bounds.items():  # noqa: SIM110 (half of the time that `all` takes)
            if getattr(s, name) > most:
                return False
        return True

    def onward(self, s: Any) -> Any:
        """The state after the most urgent step that is not by chance; None where there is none."""
        return next((then for _, _, then in self.ways(s, self.quiet)), None)


def names_of(step: Step) -> list[str]:
    return list(inspect.signature(step).parameters)[2:]


class Result(NamedTuple):
    states: int
    transitions: Counter[str]
    depth: int
    broken: str = ""  # the invariant that does not hold at the end of the story
    story: tuple[str, ...] = ()  # the shortest


def explore(system: System) -> Result:
    seen: Seen = {system.start: None}
    onward: Onward = {}
    frontier = [system.start]
    taken: Counter[str] = Counter()
    depth = 0
    while frontier:
        nearest, frontier = frontier, []
        for s in nearest:
            onward[s] = None
            for step, values, then in system.ways(s, system.steps):
                if onward[s] is None and step in system.quiet:
                    onward[s] = then
                if system.is_within(then):
                    taken[step.__name__] += 1
                    if then not in seen:
                        seen[then] = (s, step, values)
                        frontier.append(then)
        for number, holds in system.invariants.items():
            for s in frontier:
                if not holds(system, s):
                    return Result(len(seen), taken, depth, number, story(seen, s))
        depth += 1
    complete: set[Any] = set()
    for s in seen:
        if not comes_to_rest(system, s, onward, complete):
            return Result(len(seen), taken, depth, "liveness", story(seen, s))
    return Result(len(seen), taken, depth)


def comes_to_rest(system: System, s: Any, onward: dict[Any, Any], complete: set[Any]) -> bool:
    """Whether the most urgent steps lead to a complete state at rest, as from all in `complete`."""
    passed: set[Any] = set()
    while s not in complete:
        if s in passed:
            return False  # a cycle: it never rests
        passed.add(s)
        then = onward[s] if s in onward else system.onward(s)
        if then is None:
            if not system.is_complete(s):
                return False
            break
        s = then
    complete.update(passed)
    return True


def story(seen: Seen, s: Any) -> tuple[str, ...]:
    came = seen[s]
    if came is None:
        return ()
    before, step, values = came
    told = [getattr(value, "name", value) for value in values]
    sentence = str(step.__doc__).format(**dict(zip(names_of(step), told, strict=True)))
    return (*story(seen, before), sentence)
