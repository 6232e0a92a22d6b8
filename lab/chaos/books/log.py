"""Checks the log: its true entries are in order, and all others are accounted for.

An entry is true if the final database says so: its term is one of the database's, and its id lies
in that term's range. An untrue entry came from a stranger, or belongs to a past that a restore has
undone, or was sent by one of our leaders that never committed it; then another sent the same.

Or it was never answered: a session that is ended while it waits for a synchronous standby leaves a
ride that only the primary has, until the standby is promoted.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from lab.chaos.evidence import Evidence
from lab.chaos.journal import Ask
from lab.chaos.observer import Reading, Told
from rocket_rides.log import Record

Findings = Iterator[str]
NOWHERE = (0, 0)


class Story:
    """The log's entries, compared with what the database says at the end."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._rides = evidence.final.rides
        self._ids = sorted(self._rides)
        self._asked: dict[object, Ask] = {ask.distance: ask for ask in evidence.asks}
        self.true = [told.record for told in evidence.told if self.is_true(told.record)]
        self.others = [told for told in evidence.told if not self.is_true(told.record)]

    def is_true(self, record: Record) -> bool:
        after, upto = self._evidence.final.terms.get(record.term, NOWHERE)
        return after < record.id <= upto

    def _is_as_sent(self, record: Record) -> bool:
        """Whether the true entry for this ride says the same."""
        ride = self._rides.get(record.id)
        return ride == record.distance and record.prev == self.prev(record.id)

    def prev(self, ride: int) -> int:
        """The id of the ride before this one."""
        before = bisect_left(self._ids, ride)
        return self._ids[before - 1] if before else 0

    def why(self, told: Told) -> str | None:
        """Where an untrue entry came from; None if nobody can have written it."""
        record = told.record
        if record in self._evidence.foreign:
            return "from strangers"
        if record.term and record.term in self._evidence.final.terms and self._is_as_sent(record):
            return "uncommitted"
        ask = self._asked.get(record.distance)
        if any(restore.may_explain(told.at, ask) for restore in self._evidence.restores):
            return "from lost pasts"
        if any(wait.may_explain(told.at, ask) for wait in self._evidence.in_vain):
            return "unanswered"
        return None

    def reasons(self) -> Counter[str]:
        """The number of untrue entries, by where they came from."""
        return Counter(self.why(told) or "unexplained" for told in self.others)


def the_log_is_in_order(evidence: Evidence) -> Findings:
    """Ids rise, except for records sent again; this also holds across restores.

    Whatever a term's leader sent up to its last commit, it sent before the next term began. Only
    what a reading finds in another log may be older than all that was seen before: entries that the
    onlooker missed are followed by others than then, or by none.
    """
    story, seen, greatest = Story(evidence), set[int](), 0
    for reading in evidence.readings or [Reading([told.record for told in evidence.told])]:
        true = [record for record in reading.records if story.is_true(record)]
        found = sum(map(story.is_true, reading.records[: reading.found]))
        here, newest = 0, NOWHERE
        for at, record in enumerate(true):
            ride, term = record.id, evidence.final.terms[record.term]
            above = here if at < found else max(here, greatest)
            if term < newest:
                yield f"the log has ride {ride}, of a term that had ended, after ride {here}"
            elif ride < above and ride not in seen and not _is_sent_again(true, at, above):
                yield f"the log has ride {ride} after ride {above}, but not before"
            here, newest = max(here, ride), max(term, newest)
            seen.add(ride)
        greatest = max(greatest, here)
    if evidence.final.rides and not seen:
        yield "the onlooker saw no true entry in the log"


def _is_sent_again(true: list[Record], at: int, newest: int) -> bool:
    """Whether it is of a batch whose last entry was the newest until then.

    A batch is appended as a whole. But where Redis is full, the first entries of its first copy can
    be trimmed before the onlooker reads them, to make room for the second.
    """
    for index in range(at + 1, len(true)):
        record, before = true[index], true[index - 1]
        if (record.term, record.prev) != (before.term, before.id):
            return False
        if record.id >= newest:
            return record.id == newest
    return False


def the_log_is_a_chain_of_rides(evidence: Evidence) -> Findings:
    story = Story(evidence)
    for record in dict.fromkeys(story.true):
        if evidence.final.rides.get(record.id) != record.distance:
            yield f"the log has ride {record.id} of {record.distance} m, which does not exist"
        if record.prev != (prev := story.prev(record.id)):
            yield f"in the log, prev of ride {record.id} is {record.prev}, not {prev}"


def what_is_not_true_is_explained(evidence: Evidence) -> Findings:
    story = Story(evidence)
    for told in story.others:
        if story.why(told) is None:
            yield f"the log has an entry that nobody can have written: {told.record}"


def nobody_is_blamed_without_reason(evidence: Evidence) -> Findings:
    """Neither in the logs nor in the counts, as far as the run's faults let counts be compared."""
    if not evidence.foreign and not evidence.restores:
        yield from evidence.blamed
    seen = len(Story(evidence).others)
    for name, told in evidence.final.unbelieved.items():
        more, less = told > seen, told < seen
        if (more and not evidence.read_again) or (less and not evidence.left_unread):
            yield f"{name} did not believe {told} entries, but {seen} are untrue"


def nothing_is_healed_that_the_log_told(evidence: Evidence) -> Findings:
    """Where nothing was taken from the log and nobody else wrote to it, there is no gap."""
    if evidence.keeps_log and not evidence.restores and not evidence.foreign:
        for name, healed in evidence.final.healed.items():
            if healed.gaps or healed.rides:
                yield f"{name} healed {healed.rides} rides in {healed.gaps} gaps of a whole log"


CLAIMS = (
    the_log_is_in_order,
    the_log_is_a_chain_of_rides,
    what_is_not_true_is_explained,
    nobody_is_blamed_without_reason,
    nothing_is_healed_that_the_log_told,
)
