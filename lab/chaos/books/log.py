"""The onlooker's entries: each true one is of a ride that there is, and names the one before it.

An entry is true if the final database says so: its term is one of the database's, and its id lies
in that term's range. No consumer may count another. Those come from strangers, from a past that a
restore has undone, or from a leader that never committed them.
"""

from bisect import bisect_left
from collections.abc import Iterator

from lab.chaos.evidence import Evidence
from rocket_rides.log import Record

NOWHERE = (0, 0)


def true_entries(evidence: Evidence) -> list[Record]:
    """Each once, in the order of the log."""
    records = dict.fromkeys(told.record for told in evidence.told)
    ranges = ((record, evidence.final.terms.get(record.term, NOWHERE)) for record in records)
    return [record for record, (after, upto) in ranges if after < record.id <= upto]


def the_log_is_a_chain_of_rides(evidence: Evidence) -> Iterator[str]:
    rides, true = evidence.final.rides, true_entries(evidence)
    ids = sorted(rides)
    for record in true:
        before = bisect_left(ids, record.id)
        prev = ids[before - 1] if before else 0
        if rides.get(record.id) != record.distance:
            yield f"the log has ride {record.id} of {record.distance} m, which does not exist"
        if record.prev != prev:
            yield f"in the log, prev of ride {record.id} is {record.prev}, not {prev}"
    if rides and not true:
        yield "the onlooker saw no true entry in the log"


CLAIMS = (the_log_is_a_chain_of_rides,)
