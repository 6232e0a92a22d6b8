"""Records that are held out: a reader whose handler refuses some of them, for a while or for ever.

It assumes a correct log: a reader gets as far as `sent` and misses nothing, as `core` says. What is
read and what is healed is the same here. Two processes may have the reader's name, and any of them
may crash, or hang, before each of its steps. Each record adds a digit of its own, in base four, so
a sum shows how often it has each of them.

A person has a record tried again, or drops it, at any time. A reset, of which a reconciliation says
the sum up to a position, and a recount make the state anew, whatever the handler would refuse.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

from lab.specification.explorer import System, Value, require, swap

BATCH = 3  # records, at most
MOST = 2  # records that are held out, and of which nobody has decided: at that the reader stands


class HeldOut(Value, frozen=True):
    name: int  # the position of a record that the state lacks
    retry: bool = False
    is_dropped: bool = False


class Process(Value, frozen=True):
    name: int
    at: int = 0  # where it stands, as far as it knows
    most: int = BATCH  # records that its next transaction may take
    refused: int = 0  # the record that it is about to hold out
    retrying: int = 0  # the record that it is about to try again


class Books(Value, frozen=True):
    sent: int = 0
    position: int = 0
    total: int = 0
    held: tuple[HeldOut, ...] = ()
    reset: int = 0  # the position that a pending one is about
    recount: bool = False
    processes: tuple[Process, ...] = ()
    bad: tuple[int, ...] = ()  # what the state refuses now
    blamed: tuple[int, ...] = ()  # what it has ever refused
    is_full: bool = False  # the server's disk, say: it refuses whatever is written
    begun: int = 0  # from here on: what has been used of the bounds
    breaks: int = 0
    outages: int = 0
    asked: int = 0
    resets: int = 0

    def having(self, old: Process, *new: Process) -> "Books":
        return self.but(processes=swap(self.processes, old, *new))

    def without(self, row: HeldOut, *new: HeldOut) -> "Books":
        return self.but(held=swap(self.held, row, *new))


def exact(upto: int) -> int:
    """The sum of all records up to a position."""
    return sum(map(digit, range(1, upto + 1)))


def digit(record: int) -> int:
    return int(4 ** (record - 1))


class HoldingOut(System):
    # The reader: unified_log/readers/taking.py.

    def ends(self, s: Books, process: Process) -> Books:
        """process {process} finds that another has moved the checkpoint, and ends"""
        require(process.at != s.position and not process.retrying)
        return s.having(process)

    def looks_again(self, s: Books, process: Process) -> Books:
        """process {process}, which stands still, finds that something is asked for"""
        require(process.refused and not self.has_room(s) and self.is_asked(s))
        return s.having(process, process.but(refused=0))

    def applies(self, s: Books, process: Process) -> Books:
        """process {process} applies the reset"""
        require(s.reset and not self.is_busy(s, process) and not s.is_full)
        to = max(s.reset, s.position)
        held = s.held if self.broken == "reset-leaves-rows" else ()
        after = s.having(process, Process(process.name, to))
        return after.but(reset=0, position=to, total=exact(to), held=held)

    def starts_over(self, s: Books, process: Process) -> Books:
        """process {process} starts over, since a recount was asked for"""
        require(s.recount and not s.reset and not self.is_busy(s, process) and not s.is_full)
        held = s.held if self.broken == "recount-leaves-rows" else ()
        after = s.having(process, Process(process.name))
        return after.but(recount=False, position=0, total=0, held=held)

    def finds_a_retry(self, s: Books, process: Process) -> Books:
        """process {process} finds that somebody wants a record to be tried again"""
        asked = [row.name for row in s.held if row.retry]
        require(asked and not self.is_busy(s, process))
        return s.having(process, process.but(retrying=asked[0]))

    def tries_again(self, s: Books, process: Process) -> Books:
        """process {process} locks the checkpoint, looks whether that still stands, and counts it"""
        require(process.retrying and not s.is_full)
        record, stands = process.retrying, Process(process.name, s.position)
        row = next((row for row in s.held if row.name == record and row.retry), None)
        if row is None and self.broken == "retry-looks-once":
            return s.having(process, stands).but(total=s.total + digit(record))
        if row is None:
            return s.having(process, stands)
        if record in s.bad:
            return s.having(process, stands).without(row, HeldOut(record))
        left = [row] if self.broken == "retry-leaves-row" else []
        return s.having(process, stands).without(row, *left).but(total=s.total + digit(record))

    def takes(self, s: Books, process: Process) -> Books:
        """process {process} takes a batch, and moves the checkpoint past it"""
        batch = self.batch(s, process)
        require(not any(record in s.bad for record in batch) and not s.is_full)
        total, upto = s.total + sum(map(digit, batch)), batch[-1]
        moved = Process(process.name, upto, min(BATCH, process.most * 2))
        return s.having(process, moved).but(position=upto, total=total)

    def is_refused(self, s: Books, process: Process) -> Books:
        """process {process} has its batch refused, and tries half of it next"""
        batch = self.batch(s, process)
        is_blamed = any(record in s.bad for record in batch)
        require(is_blamed or (s.is_full and self.broken == "outage-held-out"))
        if len(batch) > 1:
            most = process.most if self.broken == "never-halved" else len(batch) // 2
            return s.having(process, process.but(most=most))
        return s.having(process, process.but(refused=batch[0]))

    def holds_out(self, s: Books, process: Process) -> Books:
        """process {process} holds the record out, and moves the checkpoint past it"""
        require(process.refused and process.at == s.position and self.has_room(s))
        require(not s.is_full or self.broken == "outage-held-out")  # it writes little
        row = HeldOut(process.refused)
        moved = Process(process.name, process.refused, min(BATCH, 2 * process.most))
        if self.broken == "row-alone":
            return s.having(process).but(held=self.rows(s, row))
        if self.broken == "position-alone":
            return s.having(process, moved).but(position=process.refused)
        return s.having(process, moved).but(held=self.rows(s, row), position=process.refused)

    def begins(self, s: Books, new: int) -> Books:
        """process {new} begins"""
        require(not s.processes)
        return self.begins_too(s, new)

    # People, customers and faults.

    def begins_too(self, s: Books, new: int) -> Books:
        """process {new} begins beside another"""
        processes = (*s.processes[-1:], Process(new, s.position))
        return s.but(processes=processes, begun=new)

    def crashes(self, s: Books, process: Process) -> Books:
        """process {process} crashes"""
        return s.having(process)

    def sends(self, s: Books) -> Books:
        """the streamer sends the next record"""
        return s.but(sent=s.sent + 1)

    def refuses(self, s: Books, record: int) -> Books:
        """from now on, the state refuses record {record}"""
        require(record not in s.bad)
        blamed = tuple(sorted({*s.blamed, record}))
        return s.but(bad=tuple(sorted((*s.bad, record))), blamed=blamed, breaks=s.breaks + 1)

    def is_mended(self, s: Books, record: int) -> Books:
        """somebody sees to it that the state accepts record {record}"""
        require(record in s.bad)
        return s.but(bad=swap(s.bad, record))

    def fills(self, s: Books) -> Books:
        """the server can't write"""
        require(not s.is_full)
        return s.but(is_full=True, outages=s.outages + 1)

    def is_back(self, s: Books) -> Books:
        """the server can write again"""
        require(s.is_full)
        return s.but(is_full=False)

    def asks_to_retry(self, s: Books, row: HeldOut) -> Books:
        """somebody asks for record {row} to be tried again"""
        require(not row.retry)
        return s.without(row, HeldOut(row.name, retry=True)).but(asked=s.asked + 1)

    def drops(self, s: Books, row: HeldOut) -> Books:
        """somebody gives record {row} up"""
        require(not row.is_dropped)
        return s.without(row, HeldOut(row.name, is_dropped=True)).but(asked=s.asked + 1)

    def is_reset(self, s: Books, upto: int) -> Books:
        """a reconciliation asks for a reset: it has added up all records up to {upto}"""
        return s.but(reset=upto, resets=s.resets + 1)

    def is_to_recount(self, s: Books) -> Books:
        """a repair asks for a recount, which supersedes what was asked for before"""
        return s.but(recount=True, reset=0, resets=s.resets + 1)

    # What may come next.

    def ranges(self, s: Books) -> dict[str, Iterable[object]]:
        return {
            "process": s.processes,
            "new": [s.begun + 1],
            "record": range(1, s.sent + 1),
            "row": s.held,
            "upto": range(1, s.sent + 1),
        }

    def batch(self, s: Books, process: Process) -> range:
        """The records that it takes next. Raises Refused where it is busy, or there are none."""
        require(not self.is_busy(s, process) and not self.is_asked(s) and s.position < s.sent)
        return range(process.at + 1, min(s.sent, process.at + process.most) + 1)

    def is_busy(self, s: Books, mine: Process) -> bool:
        return bool(mine.refused or mine.retrying or mine.at != s.position)

    def is_asked(self, s: Books) -> bool:
        return bool(s.reset or s.recount or any(row.retry for row in s.held))

    def has_room(self, s: Books) -> bool:
        return undecided(s) < MOST or self.broken == "holds-out-all"

    def rows(self, s: Books, new: HeldOut) -> tuple[HeldOut, ...]:
        return tuple(sorted((*(row for row in s.held if row.name != new.name), new)))

    def is_complete(self, s: Books) -> bool:
        """All records are counted or held out, or too many are, and nothing is asked for."""
        stands = any(mine.refused for mine in s.processes) and not self.has_room(s)
        return (s.position == s.sent or stands or s.is_full) and (s.is_full or not self.is_asked(s))

    # What must hold.

    def counts_once(self, s: Books) -> bool:
        """No record is in the sum twice."""
        return all(s.total // digit(record) % 4 <= 1 for record in range(1, s.sent + 1))

    def sum_and_held_out_are_exact(self, s: Books) -> bool:
        """The sum, and what is held out, are all records up to the checkpoint."""
        held = sum(digit(row.name) for row in s.held)
        return s.total + held == exact(s.position)

    def only_what_was_refused(self, s: Books) -> bool:
        """No record is held out that the state has never refused."""
        return all(row.name in s.blamed for row in s.held)

    def not_a_whole_log(self, s: Books) -> bool:
        """No more are held out than MOST beyond those about which somebody has decided."""
        return len(s.held) <= MOST + s.asked

    start = Books()
    by_chance: Any = (
        *(begins_too, crashes, sends, refuses, is_mended, fills, is_back),
        *(asks_to_retry, drops, is_reset, is_to_recount),
    )
    spends: ClassVar = {
        begins_too: "begun", sends: "sent", refuses: "breaks", fills: "outages",
        asks_to_retry: "asked", drops: "asked", is_reset: "resets", is_to_recount: "resets",
    }  # fmt: skip
    invariants: ClassVar = {
        "4": counts_once,
        "8": sum_and_held_out_are_exact,
        "13, refused": only_what_was_refused,
        "13, a whole log": not_a_whole_log,
    }


def undecided(s: Books) -> int:
    return sum(not row.is_dropped for row in s.held)
