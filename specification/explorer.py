"""Visits every state that can be reached, the nearest first, and tells how one comes about.

`explore` looks for a state in which an invariant does not hold. Where there is none, it shows that
from every state, with nothing more happening by chance, all comes to rest and is then complete.

A system may have observers: each reads what is shared, and writes only what is its own. What one
does, nobody else can tell, so any number of them can only be where each of them can be alone. So
`explore` keeps with each shared state every observer that can be beside it: what holds of any two
of these, holds of any two observers; and as each of them comes to rest, all do.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple, Self, TypeVar

import msgspec

MOST_STEPS = 1000  # to a rest
T = TypeVar("T")
Place = tuple[Any, Any]  # a state, and an observer beside it
Step = Callable[..., Any]  # a method, whose docstring tells it in a story
Way = tuple[Step, tuple[int, ...], Any]  # a step, its values, and what it leads to


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


@cache
def names_of(step: Step, states: int) -> tuple[str, ...]:
    """The names of a step's values, which come after so many states."""
    return step.__code__.co_varnames[1 + states : step.__code__.co_argcount]


class Result(NamedTuple):
    """`broken` is the invariant that does not hold at the end of the shortest such `story`."""

    states: int
    transitions: Counter[str]
    depth: int
    broken: str = ""
    story: tuple[str, ...] = ()


class System:
    """What can be explored. The values that a step takes are named after what they can be."""

    start: Any
    observer: Any = None
    goes_on: tuple[Step, ...]  # what happens by itself, the most urgent first
    by_chance: tuple[Step, ...]  # what need not happen: customers and faults
    observer_goes_on: tuple[Step, ...] = ()
    observer_by_chance: tuple[Step, ...] = ()
    invariants: dict[str, Callable[[Any], bool]]  # by the number of the guarantee
    observed: dict[str, Callable[[Any, Any], bool]] = {}  # of an observer beside a state
    agreed: dict[str, Callable[[Iterable[Any]], bool]] = {}  # of all that can be beside one

    def ranges(self, s: Any) -> dict[str, Iterable[int]]:
        """What each value can be."""
        raise NotImplementedError

    def is_within(self, s: Any) -> bool:
        """Whether the state is within the bound."""
        raise NotImplementedError

    def is_complete(self, s: Any, me: Any) -> bool:
        """Whether nothing is missing, where nothing goes on."""
        raise NotImplementedError

    def beside(self, s: Any, me: Any) -> Any:
        """What becomes of an observer as the others reach `s`."""
        return me

    def ways(self, steps: Iterable[Step], *state: Any) -> Iterator[Way]:
        """The steps that a state allows."""
        ranges = self.ranges(state[0])
        for step in steps:
            for values in product(*map(ranges.__getitem__, names_of(step, len(state)))):
                try:
                    yield step, values, step(self, *state, *values)
                except Refused:
                    continue

    def fails(self, s: Any, me: Any, is_new: bool) -> str:
        """The number of a guarantee that does not hold; of the state itself, if it `is_new`."""
        wrong = [number for number, holds in self.observed.items() if not holds(s, me)]
        if is_new:
            wrong += [number for number, holds in self.invariants.items() if not holds(s)]
        return wrong[0] if wrong else ""


def explore(system: System, tell: Callable[[int, int], None] = lambda states, depth: None) -> Result:
    """Explore all of it; `tell` is called at each depth, with the states so far."""
    frontier: list[Place] = [(system.start, system.observer)]
    seen: dict[Any, dict[Any, Any]] = {system.start: {system.observer: None}}  # and the way there
    onward: dict[Any, list[Way]] = {}
    same: dict[Any, Any] = {}  # equal states are one object
    taken: Counter[str] = Counter()
    states, depth = 1, 0
    while frontier:
        nearest, frontier = frontier, []
        for s, me in nearest:
            if s not in onward:
                ways = system.ways(system.goes_on + system.by_chance, s)
                within = ((step, values, then) for step, values, then in ways if system.is_within(then))
                onward[s] = [(step, values, same.setdefault(then, then)) for step, values, then in within]
            shared = [(way, way[2], system.beside(way[2], me)) for way in onward[s]]
            own = [(way, s, way[2]) for way in system.ways(system.observer_goes_on + system.observer_by_chance, s, me)]
            for way, there, other in shared + own:
                taken[way[0].__name__] += 1
                beside = seen.setdefault(there, {})
                if other in beside:
                    continue
                beside[other] = (s, me, way)
                frontier.append((there, other))
                states += 1
                if broken := system.fails(there, other, is_new=len(beside) == 1):
                    return Result(states, taken, depth, broken, story(seen, there, other))
        depth += 1
        tell(states, depth)
    broken, s, me = wrong_at_rest(system, seen)
    return Result(states, taken, depth, broken, story(seen, s, me) if broken else ())


def wrong_at_rest(system: System, seen: dict[Any, dict[Any, Any]]) -> tuple[str, Any, Any]:
    """Observers that don't agree, or a place that doesn't come to rest complete; "" if none."""
    ends: dict[Any, Any] = {}
    own_ends: dict[Any, dict[Any, Any]] = {}
    for s, observers in seen.items():
        for number, agree in system.agreed.items():
            if not agree(observers):
                return number, s, next(iter(observers))
        end = rest(s, partial(system.ways, system.goes_on), ends)
        going_on = partial(system.ways, system.observer_goes_on, end)
        for me in observers:
            own_end = end and rest(system.beside(end, me), going_on, own_ends.setdefault(end, {}))
            if not end or not system.is_complete(end, own_end):
                return "liveness", s, me
    return "", None, None


def rest(state: Any, ways: Callable[[Any], Iterator[Way]], ends: dict[Any, Any]) -> Any:
    """Where the most urgent steps lead; None if they never end."""
    path = [state]
    while path[-1] not in ends and len(path) < MOST_STEPS:
        last = path[-1]
        path.append(next((then for _, _, then in ways(last)), last))
        if path[-1] is last:
            ends[last] = last
    end = ends.get(path[-1])
    ends.update(dict.fromkeys(path, end))
    return end


def story(seen: dict[Any, dict[Any, Any]], s: Any, me: Any) -> tuple[str, ...]:
    """The steps that led there, as sentences."""
    if seen[s][me] is None:
        return ()
    before, was, (step, values, _) = seen[s][me]
    told = dict(zip(names_of(step, step.__code__.co_argcount - 1 - len(values)), values, strict=True))
    return (*story(seen, before, was), str(step.__doc__).format(**told))
