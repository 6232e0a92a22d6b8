"""Replays a recording through the specification.

Each commit must be a transition that the specification allows in that state, with the result that
was recorded (`lab.chaos.trace.specified`); or a drift of the nemesis; or a reset. Any other commit
is refused.

The onlooker may have missed an entry only where a fault may have hidden it. A consumer may have
missed an entry that the onlooker saw only after a fault that may have taken some. Each life of the
database is judged by itself, from the rows that it begins with, which must be right.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from lab.chaos.observer import Told
from lab.chaos.trace.log_book import LogBook
from lab.chaos.trace.pgoutput import Change
from lab.chaos.trace.recording import Commit, Life, Step, Struck
from lab.chaos.trace.replica import Replica, opened
from lab.chaos.trace.sending import SendingJudge
from lab.chaos.trace.specified import NotAllowed
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
            raise NotAllowed(f"no commit says so: {error!r}") from error

    def _begin(self, replica: Replica) -> None:
        self._sending = SendingJudge(replica, self._log, self.steps)
        self._totals = TotalsJudge(replica, self._log, self.steps)

    def _commit(self, commit: Commit) -> None:
        did: defaultdict[str, list[Change]] = defaultdict(list)
        for change in commit.changes:
            did[change.table].append(change)
        if did["drifts"]:
            self._totals.makes_wrong(did)
            return
        self._sending.takes(did)
        self._sending.begins(did)
        self._sending.moves(did, commit.at)
        self._totals.moves(did, commit.at)


class Verdict(NamedTuple):
    """The result of a replay: how often each step was met, and which was refused, and why."""

    met: Counter[str]
    refused: str = ""


def judge(steps: Callable[[], Iterable[Step]], longest_log: int) -> Verdict:
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
