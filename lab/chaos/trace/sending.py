"""Judges by the specification what is taken and sent: rides, terms, batches."""

from collections import Counter
from collections.abc import Mapping

from lab.chaos.trace import specified
from lab.chaos.trace.pgoutput import Change
from lab.chaos.trace.replica import LogBook, Replica
from lab.chaos.trace.rows import ids_of, name_of, number, staged, taken
from lab.chaos.trace.specified import Batch, Entry, NotAllowed, Ride, require

Did = Mapping[str, list[Change]]  # what a commit did, by table


class SendingJudge:
    """Of one life. Whatever is not allowed raises NotAllowed; `met` counts what is."""

    at = 0.0  # the time of the commit, in seconds

    def __init__(self, replica: Replica, log: LogBook, met: Counter[str]) -> None:
        self._replica = replica
        self._log = log
        self.met = met

    def takes(self, did: Did) -> None:
        rides, records = did["rides"], did["staged_log_records"]
        require(all(change.what == "I" for change in rides), "a ride stays as it is")
        require(all(change.what in "ID" for change in records), "a record stays as it is")
        new = [taken(change.row) for change in rides]
        told = [staged(change.row) for change in records if change.what == "I"]
        if not new and not told:
            return
        specified.takes(self._replica.last_sent, [Ride(*ride[:2]) for ride in new], told)
        for ride in new:
            self._replica.take(*ride)
        for record in told:
            self._replica.stage(record)
        self.met["takes"] += 1

    def begins(self, did: Did) -> None:
        replica, terms = self._replica, did["terms"]
        if not terms:
            return
        require(len(terms) == 1 and terms[0].what in "IU", "a leader begins one term")
        row = terms[0].row
        then = replica.begin_term(number(row, "after"), name_of(row))
        specified.begins(replica.last_sent, replica.terms, then)
        replica.terms = then
        self.met["begins"] += 1

    def moves(self, did: Did) -> None:
        replica, state = self._replica, did["streamer_state"]
        records = [change for change in did["staged_log_records"] if change.what == "D"]
        if not state and not records:
            return
        require(len(state) == 1 and state[0].what == "U" and records, "a batch moves last_sent")
        upto = number(state[0].row, "last_sent_id")
        ids = [number(change.row, "id") for change in records]
        require(replica.terms, "somebody leads")
        waiting = replica.staged_upto(upto)
        gone = [ride for ride in waiting if ride.id in {*ids}]
        require(
            len(gone) == len(ids) and gone[-1].id == upto,
            "what is sent is deleted, up to last_sent",
        )
        batch = self._sent(gone)
        specified.moves_last_sent(batch, replica.terms[-1], waiting, gone)
        replica.unstage(ids)
        replica.send(ids_of(gone), upto)
        self.met["appends"] += 1
        self.met["moves last_sent"] += 1

    def _sent(self, gone: list[Ride]) -> Batch:
        """What the log has of a batch: under the newest term, or else under any."""
        replica = self._replica
        prevs = [replica.last_sent, *ids_of(gone)]
        for _, term in reversed(replica.terms):
            links = zip(gone, prevs, strict=False)
            found = [self._log.about(term, ride, prev) for ride, prev in links]
            if all(found):
                self.met["appends twice"] += any(len(entries) > 1 for entries in found)
                return Batch(term, replica.last_sent, [entries[-1] for entries in found])
            if self._log.hides(self.at):
                self.met["appends, unseen"] += 1
                unseen = [[Entry(0, *told, term)] for told in zip(gone, prevs, strict=False)]
                seen = [(told or assumed)[-1] for told, assumed in zip(found, unseen, strict=True)]
                return Batch(term, replica.last_sent, seen)
        raise NotAllowed("nobody has sent this batch")
