"""Replays a recording through the specification.

Each commit must be a transition that the specification allows where it came, and must lead to what
it led to (`lab.chaos.trace.specified`); or else be one of a projection, which is checked against
the rides themselves: a minute against its label, an outcome, and how far each of them says it is
complete; or a drift that the nemesis made. What no transition explains is refused as well.

An entry that the onlooker did not see is allowed where a fault may have hidden it, and only there.
A consumer may have missed entries that the onlooker saw only once a fault may have taken some. Each
life of the database is judged by itself, from the rows that it begins with, which must be right.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator

import msgspec

from lab.chaos.trace.derived import DerivedJudge
from lab.chaos.trace.drifts import makes_wrong
from lab.chaos.trace.opening import opened
from lab.chaos.trace.pgoutput import Change
from lab.chaos.trace.recording import Appended, Commit, End, Life, Limits, Loss, Rewind, Step
from lab.chaos.trace.replica import LogBook, Replica
from lab.chaos.trace.sending import SendingJudge
from lab.chaos.trace.specified import NotAllowed, require
from lab.chaos.trace.totals import TotalsJudge

AROUND = 10  # steps
INTERESTING = (
    "takes",
    "begins",
    "appends",
    "appends twice",
    "moves last_sent",
    "counts",
    "counts nothing",
    "heals",
    "skips what was sent again",
    "disbelieves",
    "computes a minute",
    "completes minutes",
    "begins a generation",
    "delivers",
    "gives up",
    "completes receipts",
)


class Judge:
    """Replays commits, one after another; `met` counts the transitions."""

    def __init__(self, log: LogBook, rewinds: int) -> None:
        self.met: Counter[str] = Counter()
        self._log = log
        self._lives = rewinds + 1  # to come, at most
        self._begin(Replica(), 0)

    def replay(self, step: Life | Commit) -> None:
        """Raises NotAllowed."""
        try:
            if isinstance(step, Life):
                self._lives -= 1
                require(self._lives >= 0, "no fault has begun another life")
                self._begin(opened(step), step.at)
                self.met["begins a life"] += 1
            else:
                self._sending.at = self._totals.at = step.at
                self._commit(step.did.changes)
        except (LookupError, ValueError, ArithmeticError, msgspec.MsgspecError) as error:
            raise NotAllowed(f"no commit says so: {error!r}") from error

    def _begin(self, replica: Replica, at: float) -> None:
        self._replica = replica
        self._sending = SendingJudge(replica, self._log, self.met)
        self._totals = TotalsJudge(replica, self._log, self.met, at)
        self._derived = DerivedJudge(replica, self.met)

    def _commit(self, changes: list[Change]) -> None:
        did: defaultdict[str, list[Change]] = defaultdict(list)
        for change in changes:
            require(change.what != "T", "no table is emptied")
            did[change.table].append(change)
        if did["drifts"]:
            makes_wrong(self._replica, did)
            self.met["makes something wrong"] += 1
            return
        self._sending.takes(did)
        self._sending.begins(did)
        self._sending.moves(did)
        self._totals.moves(did)
        self._derived.rolls_up(did)
        self._derived.settles_receipts(did)


class Verdict(msgspec.Struct):
    """What became of a replay: why and where it was refused, and how often each was met."""

    met: Counter[str]
    steps: int
    refused: str = ""
    around: list[str] = msgspec.field(default_factory=list)
    is_whole: bool = False

    @property
    def findings(self) -> list[str]:
        why = f"the specification refuses step {self.steps} of the recording: {self.refused}"
        found = [why] if self.refused else []
        return found if self.is_whole else [*found, "the recording is cut short"]

    @property
    def status(self) -> int:
        """The exit status."""
        if self.refused:
            return 1
        return 2 if self.missing or not self.is_whole else 0

    @property
    def missing(self) -> list[str]:
        return [name for name in INTERESTING if not self.met[name]]


def judge(steps: Callable[[], Iterator[Step]]) -> Verdict:
    """Replay the steps, which are read twice: first the log, then the commits."""
    entries, losses, longest, rewinds, is_whole = [], [], 0, 0, False
    for step in steps():
        if isinstance(step, Limits):
            longest = step.longest_log
        elif isinstance(step, Appended):
            entries.append(step)
        elif isinstance(step, Loss):
            losses.append(step)
        elif isinstance(step, Rewind):
            rewinds += 1
        elif isinstance(step, End):
            is_whole = not step.cut_short
    judging, count = Judge(LogBook(entries, losses, longest), rewinds), 0
    before: deque[Step] = deque(maxlen=AROUND)
    commits = (step for step in steps() if isinstance(step, Life | Commit))
    for count, step in enumerate(commits, 1):
        try:
            judging.replay(step)
        except NotAllowed as reason:
            after = [shown(next_) for next_, _ in zip(commits, range(AROUND), strict=False)]
            around = [*map(shown, before), f"> {shown(step)}", *after]
            return Verdict(judging.met, count, str(reason), around, is_whole)
        before.append(step)
    return Verdict(judging.met, count, is_whole=is_whole)


def shown(step: Step) -> str:
    """A step in a line."""
    if isinstance(step, Life):
        return f"life {step.number} begins with {len(step.tables['rides'])} rides"
    assert isinstance(step, Commit)  # noqa: S101
    changes = "; ".join(
        f"{change.what} {change.table} {' '.join(str(value) for value in change.row.values())}"
        for change in step.did.changes[:6]
    )
    more = len(step.did.changes) - 6
    return f"{step.at:.3f} {changes}{f'; {more} more' if more > 0 else ''}"


def lines(verdict: Verdict) -> Iterator[str]:
    """A verdict for a person."""
    if verdict.refused:
        yield f"REFUSED: step {verdict.steps}: {verdict.refused}"
        yield from verdict.around
    else:
        yield f"{verdict.steps:,} steps, all allowed"
    yield ", ".join(f"{name} {count:,}" for name, count in sorted(verdict.met.items()) if count)
    if verdict.missing:
        yield f"thin: never met: {', '.join(verdict.missing)}"
    if not verdict.is_whole:
        yield "the recording is cut short"
