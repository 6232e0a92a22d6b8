"""Judges the core by the specification: rides, terms, batches, totals with their checkpoints."""

from collections import Counter
from collections.abc import Mapping

from chaos import specified
from chaos.books import Books, LogBook
from chaos.pgoutput import Change
from chaos.rows import ids_of, name_of, number, staged, taken, text, total_of
from chaos.specified import Batch, Entry, NotAllowed, Reading, Ride, Total, require

Did = Mapping[str, list[Change]]  # what a commit did, by table


class CoreJudge:
    """Of one life. Whatever is not allowed raises NotAllowed; `met` counts what is."""

    at = 0.0  # the time of the commit, in seconds

    def __init__(self, books: Books, log: LogBook, met: Counter[str], began: float) -> None:
        self._books = books
        self._began = began  # the life
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
        specified.takes(self._books.last_sent, [Ride(*ride[:2]) for ride in new], told)
        for ride in new:
            self._books.take(*ride)
        for record in told:
            self._books.stage(record)
        self.met["takes"] += 1

    def begins(self, did: Did) -> None:
        books, terms = self._books, did["terms"]
        if not terms:
            return
        require(len(terms) == 1 and terms[0].what in "IU", "a leader begins one term")
        row = terms[0].row
        then = books.begin_term(number(row, "after"), name_of(row))
        specified.begins(books.last_sent, books.terms, then)
        books.terms = then
        self.met["begins"] += 1

    def moves(self, did: Did) -> None:
        books, state = self._books, did["streamer_state"]
        records = [change for change in did["staged_log_records"] if change.what == "D"]
        if not state and not records:
            return
        require(len(state) == 1 and state[0].what == "U" and records, "a batch moves last_sent")
        upto = number(state[0].row, "last_sent_id")
        ids = [number(change.row, "id") for change in records]
        require(books.terms, "somebody leads")
        waiting = books.staged_upto(upto)
        gone = [ride for ride in waiting if ride.id in {*ids}]
        require(
            len(gone) == len(ids) and gone[-1].id == upto,
            "what is sent is deleted, up to last_sent",
        )
        batch = self._sent(gone)
        specified.moves_last_sent(batch, books.terms[-1], waiting, gone)
        books.unstage(ids)
        books.send(ids_of(gone), upto)
        self.met["appends"] += 1
        self.met["moves last_sent"] += 1

    def _sent(self, gone: list[Ride]) -> Batch:
        """What the log has of a batch: under the newest term, or else under any."""
        books = self._books
        prevs = [books.last_sent, *ids_of(gone)]
        for _, term in reversed(books.terms):
            links = zip(gone, prevs, strict=False)
            found = [self._log.about(term, ride, prev) for ride, prev in links]
            if all(found):
                self.met["appends twice"] += any(len(entries) > 1 for entries in found)
                return Batch(term, books.last_sent, [entries[-1] for entries in found])
            if self._log.hides(self.at):
                self.met["appends, unseen"] += 1
                entries = [Entry(0, *told, term) for told in zip(gone, prevs, strict=False)]
                return Batch(term, books.last_sent, entries)
        raise NotAllowed("nobody has sent this batch")

    def moves_totals(self, did: Did) -> None:
        """Checkpoints of totals, each with its total; the transaction may have reset it."""
        books = self._books
        totals = {change.row["name"]: change.row for change in did["consumer_states"]}
        resets = [change.row for change in did["resets"] if change.row.get("status") == "applied"]
        for change in did["checkpoints"]:
            require(change.what != "D", "nobody deletes a checkpoint")
            if change.row["kind"] != "total":
                continue
            name = text(change.row, "name")
            was, counted = books.totals.get(name), totals.pop(name, {})
            then = total_of(change.row, counted.get("total_distance"), was)
            if was is None:
                require(then == Total(), "a total begins with nothing")
            elif any(row["consumer_name"] == name for row in resets):
                self._resets(then)
            elif then != was:
                self._counts(was, then)
            books.totals[name] = then
            self._heals(name, number(change.row, "gaps_healed"))
        require(not totals, "a total moves with its checkpoint")

    def _heals(self, name: str, gaps: int) -> None:
        """An entry that was lost and one that was read come to the same: the reader has counted."""
        self.met["heals"] += gaps > self._books.healed.get(name, 0)
        self._books.healed[name] = gaps

    def _resets(self, then: Total) -> None:
        require(then.ride_id <= self._books.last_sent, "no checkpoint is past last_sent")
        require(then.distance == self._books.total_upto(then.ride_id), "a reset makes it right")
        self.met["resets"] += 1

    def _counts(self, was: Total, then: Total) -> None:
        """What lies between two positions was read, and what is not there was healed."""
        books = self._books
        entries = self._read(was, then)
        terms = books.terms_about({entry.term for entry in entries})
        true = specified.believed(books.drawn, terms, entries)
        if missed := self._missed(true, then):
            entries = [entry for entry in entries if entry not in missed]
            true = [entry for entry in true if entry not in missed]
        last = max([was.ride_id, *(entry.ride.id for entry in true)])
        rides = books.sent_between(was.ride_id, max(last, then.ride_id))
        specified.counts(
            books.bounds(terms),
            [Ride(ride, books.rides[ride]) for ride in rides],
            Reading(tuple(entries), self._known(last, then.ride_id)),
            was,
            then,
            is_wiped=then.redis_id == 0 and self._log.has_lost(self.at),
        )
        self._meets(was, then, entries, true)

    def _missed(self, true: list[Entry], then: Total) -> set[Entry]:
        """What it would have counted; it may have come too late for it."""
        has_lost = self._log.has_lost(self.at)
        trimmed = self._log.trimmed(self._began, self.at)
        return {
            entry
            for entry in true
            if entry.ride.id > then.ride_id and (has_lost or entry.redis_id <= trimmed)
        }

    def _read(self, was: Total, then: Total) -> list[Entry]:
        entries = self._log.between(was.redis_id, then.redis_id)
        seen_to = entries[-1].redis_id if entries else was.redis_id
        if then.redis_id > seen_to and self._log.hides(self.at):
            self.met["reads, unseen"] += 1
            entries.append(Entry(then.redis_id, Ride(0, 0), 0, 0))  # whatever it said
        return entries

    def _known(self, last: int, ride: int) -> int:
        """What a reader that is at `ride` knew to be sent, if its entries end at `last`."""
        if last >= ride:
            return 0
        if ride not in self._books.heights and ride > self._books.first_sent:
            if not self._log.hides(self.at):
                return 0
            self.met["counts, unseen"] += 1
        return min(ride, self._books.last_sent)

    def _meets(self, was: Total, then: Total, entries: list[Entry], true: list[Entry]) -> None:
        new = {entry.ride.id for entry in true if entry.ride.id > was.ride_id}
        counted = self._books.sent_between(was.ride_id, then.ride_id)
        self.met["counts" if counted else "counts nothing"] += 1
        self.met["skips what was sent again"] += len(true) > len(new)
        self.met["disbelieves"] += len(entries) > len(true)
