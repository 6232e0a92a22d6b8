"""Maps the steps of a recording to transitions of the specification; only this module knows it.

Each step gets a *window*: a small state, with only the rides, terms and entries that the step can
touch. The specification's own function, with its guards, makes the transition in the window, and
the result must be what was recorded. Its invariants must hold there, too.

Distances are millimetres; an entry's id and a term's name are numbers.
"""

from collections.abc import Iterable, Sequence

from lab.specification.core import Core
from lab.specification.explorer import Refused
from lab.specification.states import Consumer as Total
from lab.specification.states import Database, Entry, Leader, Ride, State, Writer, is_true
from unified_log.log import LARGEST_ID

__all__ = ["Database", "Entry", "Ride", "Total"]  # of the specification

CORE = Core()
Term = tuple[int, int]  # after, name
Terms = tuple[Term, ...]


class NotAllowed(Exception):
    """The specification does not allow this step in this state; the message says why."""


def broken(rule: str) -> NotAllowed:
    return NotAllowed(f"this does not hold: {rule}")


def require(is_kept: object, rule: str) -> None:
    if not is_kept:
        raise broken(rule)


def holds(state: State, *numbers: str) -> None:
    """Raises NotAllowed unless these invariants hold in the window."""
    for number in numbers:
        invariant = CORE.invariants[number]
        require(invariant(CORE, state), f"invariant {number}: {invariant.__doc__}")


def takes(last_sent: int, rides: Sequence[Ride], staged: Sequence[Ride]) -> None:
    """A writer commits rides and their records."""
    state = State(last_sent=last_sent)
    for ride in rides:
        writer = Writer(0, ride)
        state = CORE.takes(state.but(writers=(writer,)), writer)
    require(state.staged == tuple(sorted(staged)), "a ride and its record commit together")
    holds(state, "1", "2")


def begins(last_sent: int, terms: Terms, then: Terms) -> None:
    """A streamer takes the lead; `then` are the terms afterwards."""
    state = State(last_sent=last_sent, terms=terms)
    new = {name for _, name in then} - {name for _, name in terms}
    require(len(new) == 1, "a leader begins one term")
    state = CORE.overtakes(state, new.pop())
    require(state.terms == then, "a term begins at last_sent")


def moves_last_sent(
    after: int, newest: Term, sent: Sequence[Entry], staged: Sequence[Ride], gone: Sequence[Ride]
) -> None:
    """The newest term's leader has `sent` its batch, `gone`, from `after` on, and commits."""
    last, (_, term) = gone[-1].id, newest
    rides = tuple(staged)
    mine = Leader(term, after, settled=last)
    state = State(LARGEST_ID, rides, rides, after, (newest,), leaders=(mine,))
    try:
        state = CORE.selects(state, mine, len(staged))
        state = CORE.appends(state, *state.leaders)
        [mine] = state.leaders
        told = [(entry.ride, entry.prev) for entry in sent]
        require(
            [(entry.ride, entry.prev) for entry in state.log] == told,
            "the log has the batch as the specification appends it",
        )
        state = CORE.moves_last_sent(state, mine, last)
    except Refused:
        raise broken("a leader of the newest term moves last_sent, from where it was") from None
    left = tuple(ride for ride in staged if ride not in gone)
    require(state.staged == left, "exactly what was sent is deleted")
    holds(state, "1", "2", "3")


def counts(db: Database, was: Total, then: Total) -> None:
    """A consumer counts what it has read, heals the rest, and commits: from `was` to `then`."""
    log = was.entries or (Entry(was.redis_id, Ride(0, 0), 0, 0),)
    state = State(db.drawn, db.rides, (), db.last_sent, db.terms, log=log)
    state = CORE.counts(state.but(consumer=was))
    if state.consumer != then:
        raise NotAllowed(f"what it read leads to {state.consumer}, not to {then}")


def ours(db: Database, entries: Iterable[Entry]) -> list[Entry]:
    """The entries that count under the terms of this database."""
    return [entry for entry in entries if is_true(db, entry)]
