"""Judges by the specification what is counted: totals, their checkpoints, and their resets."""

from collections import Counter
from collections.abc import Mapping

from lab.chaos import specified
from lab.chaos.books import Books, LogBook, millimetres
from lab.chaos.pgoutput import Change, Row
from lab.chaos.rows import number, text, total_of
from lab.chaos.specified import Entry, Reading, Ride, Total, require

Did = Mapping[str, list[Change]]  # what a commit did, by table


class TotalsJudge:
    """Of one life. Whatever is not allowed raises NotAllowed; `met` counts what is."""

    at = 0.0  # the time of the commit, in seconds

    def __init__(self, books: Books, log: LogBook, met: Counter[str], began: float) -> None:
        self._books = books
        self._began = began  # the life
        self._log = log
        self.met = met

    def moves(self, did: Did) -> None:
        """Checkpoints of totals, each with its total; the transaction may have reset it."""
        totals = {change.row["name"]: change.row for change in did["consumer_states"]}
        resets = self._applied(did["resets"])
        for change in did["checkpoints"]:
            require(change.what != "D", "nobody deletes a checkpoint")
            name = self._owner(change)
            if change.row["kind"] == "total":
                self._moves(name, change.row, totals.pop(name, {}), resets.pop(name, {}))
        require(not totals, "a total moves with its checkpoint")
        require(not resets, "a reset moves a checkpoint")

    def _owner(self, checkpoint: Change) -> str:
        """Its name; a checkpoint stays whose it is."""
        kind, name, row = (text(checkpoint.row, column) for column in ("kind", "name", "id"))
        if checkpoint.what == "I":
            self._books.checkpoints[kind, name] = row
        known = self._books.checkpoints.get((kind, name))
        require(known == row, "a checkpoint stays whose it is")
        return name

    def _moves(self, name: str, row: Row, counted: Row, reset: Row) -> None:
        books = self._books
        was = books.totals.get(name)
        healed = number(row, "gaps_healed") - books.healed.get(name, 0)
        then = total_of(row, counted.get("total_distance"), was)
        if was is None:
            require(then == Total(), "a total begins with nothing")
        elif reset:
            self._resets(was, then, reset)
        elif then != was:
            self._counts(was, then, healed)
            self.met["heals"] += healed > 0
            healed = 0
        else:
            require(not counted, "nothing counts twice")
        require(not healed, "a gap heals where rides are counted")
        books.totals[name] = then
        books.healed[name] = number(row, "gaps_healed")

    def _applied(self, resets: list[Change]) -> dict[str, Row]:
        """The rows of resets that were applied, by consumer."""
        books, applied = self._books, {}
        for change in resets:
            require(change.what != "D", "nobody deletes a reset")
            row = change.row
            was, status = books.resets.get(number(row, "id")), text(row, "status")
            require(was in {None, "pending"}, "a reset is settled once")
            require(was or status == "pending", "a reset is pending first")
            books.resets[number(row, "id")] = status
            if status == "applied":
                applied[text(row, "consumer_name")] = row
        return applied

    def _resets(self, was: Total, then: Total, row: Row) -> None:
        books = self._books
        told = [
            (number(row, f"{when}_ride_id"), millimetres(row[f"{when}_total"]))
            for when in ("from", "to")
        ]
        stood = [(total.ride_id, total.distance) for total in (was, then)]
        require(told == stood, "a reset tells from where to where")
        require(was.redis_id == then.redis_id, "a reset reads nothing")
        require(was.ride_id <= then.ride_id <= books.last_sent, "no checkpoint is past last_sent")
        require(then.distance == books.total_upto(then.ride_id), "a reset makes it right")
        self.met["resets"] += 1

    def _counts(self, was: Total, then: Total, healed: int) -> None:
        """What lies between two positions was read; in so many gaps it was `healed`."""
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
        exact = books.total_upto(then.ride_id)
        require(then.distance == exact, "a total is the sum of its rides")
        more = healed - self._gaps(was, then, true)
        require(
            healed >= 0 and (more <= 0 or (more == 1 and (missed or self._may_miss(true)))),
            f"{healed} gaps were counted as healed",
        )
        self._meets(was, then, entries, true)

    def _may_miss(self, true: list[Entry]) -> bool:
        """Whether some of what the onlooker saw was not there for the reader, or there is more."""
        return self._log.hides(self.at) or any(
            self._log.was_gone(entry, self._began, self.at) for entry in true
        )

    def _gaps(self, was: Total, then: Total, true: list[Entry]) -> int:
        """How many there are in what was read, and behind it."""
        last, gaps = was.ride_id, 0
        for entry in true:
            if last < entry.ride.id <= then.ride_id:
                gaps += last < entry.prev
                last = entry.ride.id
        return gaps + (last < then.ride_id)

    def _missed(self, true: list[Entry], then: Total) -> set[Entry]:
        """What it would have counted; it may have come too late for it."""
        more = [entry for entry in true if entry.ride.id > then.ride_id]
        return {entry for entry in more if self._log.was_gone(entry, self._began, self.at)}

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
