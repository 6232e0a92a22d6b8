"""Judges rides, terms and batches by the specification."""

from collections import Counter

from lab.chaos.trace import specified
from lab.chaos.trace.log_book import LogBook, Seen
from lab.chaos.trace.pgoutput import Did
from lab.chaos.trace.replica import Replica, number, staged, taken, term_of
from lab.chaos.trace.specified import Entry, Ride, require


class SendingJudge:
    """For one life. Raises NotAllowed for what is not allowed; `steps` counts what is."""

    def __init__(self, replica: Replica, log: LogBook, steps: Counter[str]) -> None:
        self._replica = replica
        self._log = log
        self._steps = steps
        self._newest = -1  # of the entries that were sent, as the onlooker first saw them
        self._moved = replica.began  # when last_sent last did

    def takes(self, did: Did) -> None:
        rides, records = did["rides"], did["staged_log_records"]
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
        self._steps["takes"] += 1

    def begins(self, did: Did) -> None:
        replica, terms = self._replica, did["terms"]
        if not terms:
            return
        require(len(terms) == 1 and terms[0].what in "IU", "a leader begins one term")
        then = replica.with_term(*term_of(terms[0].row))
        specified.begins(replica.last_sent, replica.terms, then)
        replica.terms = then
        self._steps["begins"] += 1

    def moves(self, did: Did, at: float) -> None:
        replica, state = self._replica, did["streamer_state"]
        records = [change for change in did["staged_log_records"] if change.what == "D"]
        if not state and not records:
            return
        require(len(state) == 1 and state[0].what == "U" and records, "a batch moves last_sent")
        upto = number(state[0].row, "last_sent_id")
        ids = {number(change.row, "id") for change in records}
        require(replica.terms, "somebody leads")
        waiting = replica.staged_upto(upto)
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
        self._steps["moves last_sent"] += 1

    def _sent(self, gone: list[Ride], at: float) -> list[Entry]:
        """The entries of a batch; one that was not seen must have been hidden by a fault."""
        replica = self._replica
        _, term = replica.terms[-1]
        prevs = [replica.last_sent, *(ride.id for ride in gone)]
        links = [*zip(gone, prevs, strict=False)]
        found = [self._log.about(term, ride, prev) for ride, prev in links]
        if self._log.may_differ([], self._moved, at):
            self._steps["sends, unseen"] += not all(found)
        else:
            require(all(found), "nobody has sent this batch under the newest term")
            self._goes_on([told[0] for told in found])
        self._steps["sends twice"] += any(len(told) > 1 for told in found)
        return [
            told[-1].entry if told else Entry(0, ride, prev, term)
            for told, (ride, prev) in zip(found, links, strict=True)
        ]

    def _goes_on(self, first: list[Seen]) -> None:
        """Require that the entries first came in their order."""
        for told in first:
            require(told.before > self._newest, "the log is in another order")
            self._newest = told.before
