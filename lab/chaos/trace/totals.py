"""Judges by the specification what is counted: totals, their checkpoints, and their resets."""

from collections import Counter
from collections.abc import Mapping

from lab.chaos.trace import specified
from lab.chaos.trace.pgoutput import Change, Row
from lab.chaos.trace.replica import Healing, LogBook, Replica, millimetres
from lab.chaos.trace.rows import healing_of, number, text, total_of
from lab.chaos.trace.specified import Entry, Reading, Ride, Total, require

Did = Mapping[str, list[Change]]  # what a commit did, by table


class TotalsJudge:
    """Of one life. Whatever is not allowed raises NotAllowed; `met` counts what is."""

    at = 0.0  # the time of the commit, in seconds

    def __init__(self, replica: Replica, log: LogBook, met: Counter[str], began: float) -> None:
        self._replica = replica
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
            self._replica.checkpoints[kind, name] = row
        known = self._replica.checkpoints.get((kind, name))
        require(known == row, "a checkpoint stays whose it is")
        return name

    def _moves(self, name: str, row: Row, counted: Row, reset: Row) -> None:
        replica = self._replica
        was = replica.totals.get(name)
        healing = healing_of(row)
        healed = healing.since(replica.healing.get(name, Healing()))
        then = total_of(row, counted.get("total_distance"), was)
        if was is None:
            require(then == Total(), "a total begins with nothing")
        elif reset:
            self._resets(name, was, then, reset)
        elif then != was:
            self._counts(name, was, then, healed)
            self.met["heals"] += healed.gaps > 0
        else:
            require(not counted, "nothing counts twice")
        reads = was is not None and not reset and then != was
        require(reads or healed == Healing(), "a gap heals where entries are read")
        replica.totals[name] = then
        replica.healing[name] = healing

    def _applied(self, resets: list[Change]) -> dict[str, Row]:
        """The rows of resets that were applied, by consumer."""
        replica, applied = self._replica, {}
        for change in resets:
            require(change.what != "D", "nobody deletes a reset")
            row = change.row
            was, status = replica.resets.get(number(row, "id")), text(row, "status")
            require(was in {None, "pending"}, "a reset is settled once")
            require(was or status == "pending", "a reset is pending first")
            replica.resets[number(row, "id")] = status
            if status == "applied":
                applied[text(row, "consumer_name")] = row
        return applied

    def _resets(self, name: str, was: Total, then: Total, row: Row) -> None:
        replica = self._replica
        told = [
            (number(row, f"{when}_ride_id"), millimetres(row[f"{when}_total"]))
            for when in ("from", "to")
        ]
        stood = [(total.ride_id, total.distance) for total in (was, then)]
        require(told == stood, "a reset tells from where to where")
        require(was.redis_id == then.redis_id, "a reset reads nothing")
        require(was.ride_id <= then.ride_id <= replica.last_sent, "no checkpoint is past last_sent")
        require(then.distance == replica.total_upto(then.ride_id), "a reset makes it right")
        replica.drifts.pop(name, None)
        self.met["resets"] += 1

    def _counts(self, name: str, was: Total, then: Total, healed: Healing) -> None:
        """What lies between two positions was read, and the rest was `healed`."""
        replica = self._replica
        entries = self._read(was, then)
        terms = replica.terms_about({entry.term for entry in entries})
        true = specified.believed(replica.drawn, terms, entries)
        if missed := self._missed(true, then):
            entries = [entry for entry in entries if entry not in missed]
            true = [entry for entry in true if entry not in missed]
        last = max([was.ride_id, *(entry.ride.id for entry in true)])
        rides = replica.sent_between(was.ride_id, max(last, then.ride_id))
        specified.counts(
            replica.bounds(terms),
            [Ride(ride, replica.rides[ride]) for ride in rides],
            Reading(tuple(entries), self._known(last, then.ride_id)),
            was,
            then,
            is_wiped=then.redis_id == 0 and self._log.has_lost(self.at),
        )
        exact = replica.total_upto(then.ride_id) + replica.drifts.get(name, 0)
        require(then.distance == exact, "a total is the sum of its rides")
        needed = self._healing(was, then, true)
        if missed or self._may_miss(true):
            possible = self._is_possible(was, then, needed, healed)
            require(possible, f"{healed} is not what there can have been")
        else:
            require(healed == needed, f"{healed} is not what there was: {needed}")
        self._meets(was, then, entries, true)

    def _may_miss(self, true: list[Entry]) -> bool:
        """Whether some of what the onlooker saw was not there for the reader, or there is more."""
        return self._log.hides(self.at) or any(
            self._log.was_gone(entry, self._began, self.at) for entry in true
        )

    def _healing(self, was: Total, then: Total, true: list[Entry]) -> Healing:
        """What these entries leave out, up to where the total is then, and what they repeat."""
        last, gaps, skipped = was.ride_id, 0, 0
        for entry in true:
            if entry.ride.id <= last:
                skipped += 1
            elif entry.ride.id <= then.ride_id:
                gaps += last < entry.prev
                last = entry.ride.id
        gaps += last < then.ride_id
        rides = self._replica.sent_between(was.ride_id, then.ride_id)
        unsaid = {*rides} - {entry.ride.id for entry in true}
        distance = sum(self._replica.rides[ride] for ride in unsaid)
        return Healing(gaps, len(unsaid), distance, skipped)

    def _is_possible(self, was: Total, then: Total, needed: Healing, healed: Healing) -> bool:
        """Where the reader may not have seen all that the onlooker saw, or may have seen more."""
        least = Healing() if self._log.has_lost(self.at) else needed
        rides = self._replica.sent_between(was.ride_id, then.ride_id)
        distance = sum(self._replica.rides[ride] for ride in rides)
        return (
            0 <= healed.gaps <= needed.gaps + 1
            and healed.skipped >= 0
            and least.rides <= healed.rides <= len(rides)
            and least.distance <= healed.distance <= distance
            and len({healed.gaps > 0, healed.rides > 0, healed.distance > 0}) == 1
        )

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
        if ride not in self._replica.heights and ride > self._replica.first_sent:
            if not self._log.hides(self.at):
                return 0
            self.met["counts, unseen"] += 1
        return min(ride, self._replica.last_sent)

    def _meets(self, was: Total, then: Total, entries: list[Entry], true: list[Entry]) -> None:
        new = {entry.ride.id for entry in true if entry.ride.id > was.ride_id}
        counted = self._replica.sent_between(was.ride_id, then.ride_id)
        self.met["counts" if counted else "counts nothing"] += 1
        self.met["skips what was sent again"] += len(true) > len(new)
        self.met["disbelieves"] += len(entries) > len(true)
