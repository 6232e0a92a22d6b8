"""Visits every state that can be reached, the nearest first, and tells how one comes about.

`explore` looks for a state in which an invariant does not hold. Where there is none, it shows that
from every state, with nothing more happening by chance, all comes to rest and is then complete.

A system may have observers: each reads what is shared, and writes only what is its own. What one
does, nobody else can tell, so any number of them can only be where each of them can be alone. So
`explore` keeps with each shared state every observer that can be beside it: what holds of any two
of these, holds of any two observers; and as each of them comes to rest, all do.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain, product
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import msgspec

MOST_STEPS = 1000  # to a rest
T = TypeVar("T")
Step = Callable[..., Any]
Holds = Callable[..., bool]
Way = tuple[Step, tuple[int, ...], Any]  # a step, its values, and what it leads to
Seen = dict[Any, dict[Any, Any]]  # by state and observer: how it came there


class Refused(Exception):
    """The protocol does not allow this step in this state."""


class Value(msgspec.Struct, frozen=True, gc=False, order=True, cache_hash=True):
    """Immutable, hashable, and ordered field by field."""

    def but(self, **changes: Any) -> Self:
        return msgspec.structs.replace(self, **changes)


def require(allowed: object) -> None:
    if not allowed:
        raise Refused


def named(items: Iterable[Any], name: int) -> Any:
    for item in items:
        if item.name == name:
            return item
    raise Refused


def swap(items: tuple[T, ...], old: T, *new: T) -> tuple[T, ...]:
    """The items, with `new` in the place of `old`."""
    at = items.index(old)
    return (*items[:at], *new, *items[at + 1 :])


class System:
    """What can be explored: its steps are the methods that are told, without a full stop.

    They take a state, and an observer beside it if it is the observer's step; then values, whose
    names say what they can be. The later a step is defined, the more urgent it is.
    """

    start: Any
    observer: Any = None
    by_chance: tuple[Step, ...]  # what need not happen: customers and faults
    ranges: Callable[[Any], dict[str, Iterable[int]]]  # what each value can be
    is_complete: Callable[[Any, Any], bool]  # whether nothing is missing, where nothing goes on
    invariants: ClassVar[dict[str, Holds]]  # of a state, by the number of the guarantee
    observed: ClassVar[dict[str, Holds]] = {}  # of an observer beside a state
    agreed: ClassVar[dict[str, Holds]] = {}  # of all observers that can be beside a state

    def __init__(self, broken: str = "", **bounds: int) -> None:
        """`bounds` are the most that fields of a state may be; `broken` names a sabotage."""
        self.broken, self.bounds = broken, bounds
        steps = [step for _, step in inspect.getmembers(type(self), is_told)]
        steps.sort(key=lambda step: step.__code__.co_firstlineno, reverse=True)
        self.steps = [step for step in steps if "me" not in inspect.signature(step).parameters]
        self.own_steps = [step for step in steps if step not in self.steps]

    def beside(self, s: Any, me: Any) -> Any:
        """What becomes of an observer as the others reach `s`."""
        return me

    def ways(self, *state: Any, quietly: bool = False) -> Iterator[Way]:
        """The steps that a state allows, or an observer beside it."""
        ranges = self.ranges(state[0])
        for step in self.own_steps if state[1:] else self.steps:
            if quietly and step in self.by_chance:
                continue
            for values in product(*map(ranges.__getitem__, names_of(step)[len(state) :])):
                try:
                    yield step, values, step(self, *state, *values)
                except Refused:
                    continue

    def is_within(self, s: Any) -> bool:
        return all(getattr(s, name) <= most for name, most in self.bounds.items())

    def fails(self, s: Any, me: Any, is_new: bool) -> str:
        """The number of a guarantee that does not hold; the state's own are asked once."""
        wrong = [number for number, holds in self.observed.items() if not holds(self, s, me)]
        if is_new:
            wrong += [number for number, holds in self.invariants.items() if not holds(self, s)]
        return wrong[0] if wrong else ""


def is_told(method: Any) -> bool:
    return inspect.isfunction(method) and not (method.__doc__ or ".").endswith(".")


@cache
def names_of(step: Step) -> tuple[str, ...]:
    return tuple(inspect.signature(step).parameters)[1:]


class Result(NamedTuple):
    """`broken` is the invariant that does not hold at the end of the shortest such `story`."""

    states: int
    transitions: Counter[str]
    depth: int
    broken: str = ""
    story: tuple[str, ...] = ()


def explore(system: System) -> Result:
    """Explore all of it."""
    frontier = [(system.start, system.observer)]
    seen: Seen = {system.start: {system.observer: None}}
    onward: dict[Any, list[Way]] = {}
    same: dict[Any, Any] = {}  # equal states become one object
    taken: Counter[str] = Counter()
    states, depth = 1, 0
    while frontier:
        nearest, frontier = frontier, []
        for s, me in nearest:
            if s not in onward:
                within = (way for way in system.ways(s) if system.is_within(way[-1]))
                onward[s] = [(step, at, same.setdefault(then, then)) for step, at, then in within]
            shared = ((way, way[-1], system.beside(way[-1], me)) for way in onward[s])
            own = ((way, s, way[-1]) for way in system.ways(s, me))
            for way, there, other in chain(shared, own):
                taken[way[0].__name__] += 1
                beside = seen.setdefault(there, {})
                if other not in beside:
                    beside[other] = (s, me, way)
                    frontier.append((there, other))
                    states += 1
                    if broken := system.fails(there, other, is_new=len(beside) == 1):
                        return Result(states, taken, depth, broken, story(seen, there, other))
        depth += 1
    broken, s, me = wrong_at_rest(system, seen)
    return Result(states, taken, depth, broken, story(seen, s, me) if broken else ())


def wrong_at_rest(system: System, seen: Seen) -> tuple[str, Any, Any]:
    """Observers that don't agree, or a place from which no complete rest is reached, if any."""
    ends: dict[Any, Any] = {}
    own_ends: dict[Any, dict[Any, Any]] = {}
    for s, observers in seen.items():
        for number, agree in system.agreed.items():
            if not agree(system, observers):
                return number, s, next(iter(observers))
        end = rest(system, ends, s)
        for me in observers:
            own = own_ends.setdefault(end, {})
            if end is None or not system.is_complete(end, rest(system, own, me, end)):
                return "liveness", s, me
    return "", None, None


def rest(system: System, ends: dict[Any, Any], now: Any, *beside: Any) -> Any:
    """Where the most urgent steps lead, of the state or of who is beside it; None if nowhere."""
    path: list[Any] = []
    while now not in ends and len(path) < MOST_STEPS:
        path.append(now)
        now = next((way[-1] for way in system.ways(*beside, now, quietly=True)), now)
        if now is path[-1]:
            ends[now] = now
    ends.update(dict.fromkeys(path, ends.get(now)))
    return ends.get(now)


def story(seen: Seen, s: Any, me: Any) -> tuple[str, ...]:
    """The steps that led there, as sentences."""
    if seen[s][me] is None:
        return ()
    before, was, (step, values, _) = seen[s][me]
    names = names_of(step)[-len(values) or None :]
    told = dict(zip(names, values, strict=False))
    return (*story(seen, before, was), str(step.__doc__).format(**told))
