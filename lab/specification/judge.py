"""The nightly judge and its witnesses, one of whom somebody alters.

`verdict` has its rules. A run decides and commits to the warehouse in one step, to Postgres in
another, since it may crash in between. Consumers count from the log, which nobody alters here.

The truth is the rides as they were taken, until a person approves what Postgres says instead. A
repair that leads to anything else is `wrong`, and so is a warehouse that gets fewer rides than were
taken. One party is altered in a history: Postgres (or what the judge sees of it), the warehouse
with its ledger, or totals. Where it is two, these are both copies of rides that both have.

The rules do not withstand everything. So nobody alters a ride that Postgres alone knows while
something is held or approved: a reset's sum has it, too. Nobody alters Postgres once a run has
acted on an approval: whoever is reset reads the rides after the reset's position there. A record of
another kind in a ride's place deceives the count of records: only totals know of that ride. And
gaps are left out: whoever heals one says what Postgres says.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

from lab.specification.explorer import System, Value, named, require, swap
from lab.specification.verdict import (
    BLOCK,
    Blocks,
    Findings,
    Rides,
    Sums,
    Total,
    Verdict,
    Witnesses,
    cut,
    sums,
)

SWAP = -1  # of two rides' metres


class Run(Value, frozen=True):
    position: int
    resets: tuple[tuple[int, Sums], ...]  # by the names of totals
    findings: Findings
    shown: Rides  # what Postgres said: all that a person who approves the findings knows
    gone: int
    proven: int
    approved: bool


class Books(Value, frozen=True):
    rides: Rides = ()  # the truth
    postgres: Rides = ()
    hidden: int = 0  # a policy hides this ride from the judge
    fakes: int = 0  # records of another kind that somebody put in
    warehouse: Blocks = ()
    ledger: Blocks = ()
    noted: tuple[Blocks, ...] = ((),)  # in Postgres: the hashes of ledgers
    totals: tuple[Total, ...] = ()
    proven: int = 0
    findings: Findings = ()
    shown: Rides = ()
    approved: Findings = ()
    gone: int = 0  # records, as a person has approved
    run: Run | None = None
    wrong: bool = False
    altered: tuple[str, ...] = ()
    alterations: int = 0  # from here on: what has been used of the bounds
    approvals: int = 0

    @property
    def taken(self) -> int:
        return len(self.rides)

    @property
    def parties(self) -> int:
        return len({each.split()[0] for each in self.altered})


class Judge(System):
    def __init__(self, broken: str = "", totals: int = 2, **bounds: int) -> None:
        super().__init__(broken, **bounds)
        self.two_parties = bounds.get("parties", 1) > 1
        self.start = Books(totals=tuple(map(Total, range(1, totals + 1))))

    # The run: analytics/judgement.py, analytics/job.py.

    def commits(self, s: Books) -> Books:
        """the run commits to Postgres"""
        run, totals = require(s.run), s.totals
        for name, exact in run.resets:
            mine = named(totals, name)
            totals = swap(totals, mine, mine.but(reset=(run.position, exact)))
        approved = () if run.approved else s.approved
        s = s.but(totals=totals, findings=run.findings, shown=run.shown, approved=approved)
        return s.but(gone=run.gone, proven=run.proven, run=None)

    def applies(self, s: Books, total: Total) -> Books:
        """total {total} applies its reset"""
        upto, (metres, count) = require(total.reset)
        at = max(upto, total.position)
        more, rides = sums(s.postgres[upto:at])
        reset = Total(total.name, at, (metres + more, count + rides))
        wrong = s.wrong or reset.sums != sums(s.rides[:at])
        return s.but(totals=swap(s.totals, total, reset), wrong=wrong)

    def counts(self, s: Books, total: Total) -> Books:
        """total {total} counts the next ride"""
        at = total.position + 1
        require(at <= s.taken)
        counted = total.but(position=at, sums=(total.sums[0] + at, total.sums[1] + 1))
        return s.but(totals=swap(s.totals, total, counted))

    def judges(self, s: Books) -> Books:
        """a run compares all blocks, and commits to the warehouse"""
        return self.judged(s, everything=True)

    def judges_in_rotation(self, s: Books) -> Books:
        """a run compares the newest block, and commits to the warehouse"""
        return self.judged(s, everything=False)

    def judged(self, s: Books, *, everything: bool) -> Books:
        require(s.run is None)
        seen = tuple(metres * (ride != s.hidden) for ride, metres in enumerate(s.postgres, 1))
        said = Witnesses(
            seen, s.fakes, s.taken - s.gone, s.warehouse, s.ledger, s.ledger in s.noted, s.totals,
            s.proven, s.findings,
        )  # fmt: skip
        verdict = Verdict(said, everything=everything, broken=self.broken)
        gone, same = s.gone, verdict.findings == s.approved
        if is_approved := bool(s.approved) and (same or self.broken == "stale-approval"):
            verdict = Verdict(said, everything=everything, broken=self.broken, approved=True)
            gone = s.taken - verdict.records
        warehouse, ledger = verdict.published() if verdict.publishes else (s.warehouse, s.ledger)
        exact, wrong = sums(verdict.exact), s.wrong
        for n in verdict.sides if verdict.publishes else ():
            changed = n not in verdict.held
            truth = s.rides[n * BLOCK :][: len(s.warehouse[n])]
            wrong = wrong or (changed and verdict.mine[n] != truth)
        are_lost = sums(verdict.fresh)[1] < sums(s.rides[verdict.old :])[1] and not s.fakes
        wrong = wrong or (verdict.publishes and are_lost)
        resets = [t for t in verdict.resets if t.reset != (s.taken, exact)]
        asks = tuple((each.name, exact) for each in resets)
        shown = seen if verdict.findings else ()
        run = Run(s.taken, asks, verdict.findings, shown, gone, verdict.proven, is_approved)
        after = s.but(
            warehouse=warehouse, ledger=ledger, wrong=wrong,
            noted=tuple(sorted({*s.noted, ledger})) if verdict.publishes else s.noted,
        )  # fmt: skip
        known = (s.findings, s.shown, s.gone, s.proven)
        as_before = (run.findings, run.shown, run.gone, run.proven) == known and after == s
        require(asks or is_approved or not as_before)
        return after.but(run=run)

    def takes(self, s: Books, ride: int) -> Books:
        """ride {ride} is taken"""
        return s.but(rides=(*s.rides, ride), postgres=(*s.postgres, ride))

    def crashes(self, s: Books) -> Books:
        """the run crashes before it commits to Postgres"""
        require(s.run)
        return s.but(run=None)

    def approves(self, s: Books) -> Books:
        """a person approves what is held"""
        require(s.findings and not s.approved)
        truth = s.shown + s.rides[len(s.shown) :]
        return s.but(approved=s.findings, rides=truth, approvals=s.approvals + 1)

    # Whoever alters something.

    def alters_postgres(self, s: Books, old: int, metres: int) -> Books:
        """somebody alters ride {old} in Postgres: {metres}"""
        copied, counted = len(rows(s.warehouse)), max(each.position for each in s.totals)
        last = old + (metres == SWAP)
        require(last <= max(copied, counted) or not (s.run or s.findings or s.approvals))
        require(last <= copied or not self.two_parties)
        is_used = not s.approved or s.run or any(each.reset for each in s.totals)
        require(not s.approvals or not is_used)
        return altered(s, "Postgres", postgres=falsified(s.postgres, old, metres))

    def replaces(self, s: Books, old: int) -> Books:
        """somebody deletes ride {old}, and puts in a record of another kind with its id"""
        return self.alters_postgres(s.but(fakes=s.fakes + 1), old, 0)

    def hides(self, s: Books, old: int) -> Books:
        """a policy hides ride {old} from the judge"""
        require(not s.hidden)
        return altered(s, "Postgres", hidden=old)

    def alters_warehouse(self, s: Books, old: int, metres: int) -> Books:
        """somebody alters ride {old} in the warehouse: {metres}"""
        return altered(s, "warehouse", warehouse=cut(falsified(rows(s.warehouse), old, metres)))

    def alters_ledger(self, s: Books, old: int, metres: int) -> Books:
        """somebody alters the ledger as if ride {old} were another: {metres}"""
        return altered(s, "warehouse ledger", ledger=cut(falsified(rows(s.ledger), old, metres)))

    def restores_ledger(self, s: Books, ledger: Blocks) -> Books:
        """somebody puts an older ledger there: {ledger}"""
        require(ledger != s.ledger)
        return altered(s, "warehouse ledger", ledger=ledger)

    def tampers(self, s: Books, total: Total, by: Sums) -> Books:
        """somebody changes total {total} by {by}"""
        require(not self.two_parties)
        changed = total.sums[0] + by[0], total.sums[1] + by[1]
        return altered(
            s, f"totals {total.name}", totals=swap(s.totals, total, total.but(sums=changed))
        )

    def ranges(self, s: Books) -> dict[str, Iterable[Any]]:
        return {
            "total": s.totals,
            "ride": [s.taken + 1],
            "old": range(1, s.taken + 1),
            "metres": range(SWAP, 4),
            "ledger": s.noted,
            "by": [(1, 0), (-1, 0), (0, 1), (-1, -1)],
        }

    def is_complete(self, s: Books) -> bool:
        """All is right again, if only the files, only the ledger, or one total of two is not."""
        only_total = len(s.totals) == 1 and "totals 1" in s.altered
        if s.approvals or "Postgres" in s.altered or len(s.altered) > 1 or only_total:
            return True
        exact = all(t == Total(t.name, s.taken, sums(s.rides)) for t in s.totals)
        return exact and rows(s.warehouse) == s.rides

    def repairs_are_right(self, s: Books) -> bool:
        """Resets lead to true sums, blocks that are read again to true rides; none is left out."""
        return not s.wrong

    by_chance = (
        judges_in_rotation, takes, crashes, approves, alters_postgres, replaces, hides,
        alters_warehouse, alters_ledger, restores_ledger, tampers,
    )  # fmt: skip
    spends: ClassVar = {
        takes: "taken", approves: "approvals",
        **dict.fromkeys((alters_postgres, replaces, hides, alters_warehouse), "alterations"),
        **dict.fromkeys((alters_ledger, restores_ledger, tampers), "alterations"),
    }  # fmt: skip
    invariants: ClassVar = {"12": repairs_are_right}


def altered(s: Books, who: str, **changes: Any) -> Books:
    everybody = tuple(sorted({*s.altered, who}))
    return s.but(altered=everybody, alterations=s.alterations + 1, **changes)


def falsified(rides: Rides, ride: int, metres: int) -> Rides:
    """With another length of a ride; 0 deletes it, SWAP gives it and the next each other's."""
    require(ride + (metres == SWAP) <= len(rides))
    new = rides[ride : ride + 1] + rides[ride - 1 : ride] if metres == SWAP else (metres,)
    changed = rides[: ride - 1] + new + rides[ride - 1 + len(new) :]
    require(changed != rides)
    return changed


def rows(blocks: Blocks) -> Rides:
    return tuple(ride for block in blocks for ride in block)
