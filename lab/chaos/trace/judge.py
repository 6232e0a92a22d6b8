"""Replays a recording through the specification.

Each commit must be a transition that the specification allows in that state, with the result that
was recorded; or a drift, a reset, a tampering or its undoing. An entry may be missed only where a
fault may have hidden it. Each life of the database is judged by itself, from the rows that it
begins with, which must be right.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from lab.chaos.observer import Told
from lab.chaos.trace import specified
from lab.chaos.trace.log_book import LogBook
from lab.chaos.trace.pgoutput import Change, Did
from lab.chaos.trace.recording import Commit, Life, Recorded, Struck
from lab.chaos.trace.replica import Replica, number, opened, staged, taken, term_of
from lab.chaos.trace.specified import Entry, NotAllowed, Ride, require
from lab.chaos.trace.totals import TotalsJudge


class Judge:
    """Replays commits, one after another; `steps` counts the transitions."""

    def __init__(self, log: LogBook) -> None:
        self.steps: Counter[str] = Counter()
        self._log = log
        self._begin(Replica())

    def replay(self, step: Life | Commit) -> None:
        """Raises NotAllowed."""
        try:
            if isinstance(step, Life):
                self._begin(opened(step))
                self.steps["begins a life"] += 1
            else:
                self._commit(step)
        except (LookupError, TypeError, ValueError, ArithmeticError) as error:
            raise NotAllowed(f"it can't be read: {error!r}") from error

    def end(self) -> None:
        """All has been replayed. Raises NotAllowed."""
        self._totals.end()

    def _begin(self, replica: Replica) -> None:
        self._replica = replica
        self._totals = TotalsJudge(replica, self._log, self.steps)
        self._newest = -1  # of the entries that were sent, as the onlooker first saw them
        self._moved = replica.began  # when last_sent last did

    def _commit(self, commit: Commit) -> None:
        did: defaultdict[str, list[Change]] = defaultdict(list)
        for change in commit.changes:
            did[change.table].append(change)
        if did["drifts"]:
            self._totals.makes_wrong(did)
            return
        if did["tamperings"]:  # the rides that were taken are still the truth
            self.steps["tampers, or undoes it"] += 1
            return
        self._takes(did)
        self._begins(did)
        self._moves_last_sent(did, commit.at)
        self._totals.moves(did, commit.at)

    def _takes(self, did: Did) -> None:
        rides, records = did["rides"] + did["ratings"] + did["notes"], did["staged_log_records"]
        require(all(change.what == "I" for change in rides), "a ride stays as it is")
        require(all(change.what in "ID" for change in records), "a record stays as it is")
        new = [taken(change.row) for change in rides]
        told = [staged(change.row) for change in records if change.what == "I"]
        if not new and not told:
            return
        specified.takes(self._replica.last_sent, new, told)
        for ride in new:
            self._replica.take(ride)
        self._replica.staged.update(told)
        self.steps["takes"] += 1

    def _begins(self, did: Did) -> None:
        replica, terms = self._replica, did["terms"]
        if not terms:
            return
        require(len(terms) == 1 and terms[0].what in "IU", "a leader begins one term")
        after, name = term_of(terms[0].row)  # in place of one that began at the same ride
        then = tuple(sorted({**dict(replica.terms), after: name}.items()))
        specified.begins(replica.last_sent, replica.terms, then)
        replica.terms = then
        self.steps["begins"] += 1

    def _moves_last_sent(self, did: Did, at: float) -> None:
        replica, state = self._replica, did["streamer_state"]
        records = [change for change in did["staged_log_records"] if change.what == "D"]
        if not state and not records:
            return
        require(len(state) == 1 and state[0].what == "U" and records, "a batch moves last_sent")
        upto = number(state[0].row, "last_sent_id")
        ids = {number(change.row, "id") for change in records}
        require(replica.terms, "somebody leads")
        waiting = sorted(ride for ride in replica.staged if ride.id <= upto)
        gone = [ride for ride in waiting if ride.id in ids]
        require(
            len(gone) == len(ids) and gone[-1].id == upto,
            "what is sent is deleted, up to last_sent",
        )
        sent, newest = self._sent(gone, at), replica.terms[-1]
        specified.moves_last_sent(replica.last_sent, newest, sent, waiting, gone)
        replica.staged.difference_update(gone)
        replica.send([ride.id for ride in gone], upto)
        self._moved = at
        self.steps["moves last_sent"] += 1

    def _sent(self, gone: list[Ride], at: float) -> list[Entry]:
        """The entries of a batch; one that was not seen must have been hidden by a fault."""
        replica = self._replica
        _, term = replica.terms[-1]
        prevs = [replica.last_sent, *(ride.id for ride in gone)]
        links = [*zip(gone, prevs, strict=False)]
        found = [self._log.about(term, ride, prev) for ride, prev in links]
        if self._log.may_differ([], self._moved, at):
            self.steps["sends, unseen"] += not all(found)
        else:
            require(all(found), "a batch was sent under the newest term")
            for told in found:  # in their order, as they first came
                require(told[0].before > self._newest, "the log is in order")
                self._newest = told[0].before
        self.steps["sends twice"] += any(len(told) > 1 for told in found)
        return [
            told[-1].entry if told else Entry(0, ride, prev, term)
            for told, (ride, prev) in zip(found, links, strict=True)
        ]


class Verdict(NamedTuple):
    met: Counter[str]  # how often each step was met
    refused: str = ""  # which step was, and why


def judge(steps: Callable[[], Iterable[Recorded]], longest_log: int) -> Verdict:
    """Replay the steps. They are read anew for the log, its losses and the commits."""
    entries = (step for step in steps() if isinstance(step, Told))
    losses = (step for step in steps() if isinstance(step, Struck))
    judging = Judge(LogBook(entries, losses, longest_log))
    for step in steps():
        if isinstance(step, Life | Commit):
            try:
                judging.replay(step)
            except NotAllowed as reason:
                return Verdict(judging.steps, f"{shown(step)}: {reason}")
    try:
        judging.end()
    except NotAllowed as reason:
        return Verdict(judging.steps, f"in the end: {reason}")
    return Verdict(judging.steps)


def shown(step: Life | Commit) -> str:
    """A step in a line; its time finds it in the recording, with what came before and after."""
    if isinstance(step, Life):
        return f'a life with {len(step.tables["rides"])} rides, at "at":{step.at}'
    changes = [
        f"{change.what} {change.table} {' '.join(str(value) for value in change.row.values())}"
        for change in step.changes[:6]
    ]
    return f'a commit ("at":{step.at}; {"; ".join(changes)})'
