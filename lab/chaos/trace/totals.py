"""Judges totals, their checkpoints and their resets by the specification."""

from collections import Counter
from dataclasses import dataclass, field

from lab.chaos.drifts import TOTAL
from lab.chaos.trace import held_out, specified
from lab.chaos.trace.held_out import Held, without
from lab.chaos.trace.log_book import LogBook
from lab.chaos.trace.pgoutput import Did, Row
from lab.chaos.trace.replica import Met, Replica, met_by, number, position, text, total_of
from lab.chaos.trace.specified import Database, Entry, NotAllowed, Ride, Total, require

CLOSED = "a gap counts once it is closed"


@dataclass
class TotalsJudge:
    """For one life. Raises NotAllowed for what is not allowed; `steps` counts what is."""

    replica: Replica
    log: LogBook
    steps: Counter[str]
    _cut: set[str] = field(default_factory=set)  # totals at the end of a gap's first part

    def end(self) -> None:
        upto = (self.replica.totals[name].ride_id for name in self._cut)
        require(all(ride < self.replica.last_sent for ride in upto), CLOSED)

    def moves(self, did: Did, at: float) -> None:
        """Judge the checkpoints that move, each with its total, which may have been reset."""
        totals = {text(change.row, "name"): change.row for change in did["consumer_states"]}
        rows = (change.row for change in did["resets"])
        reset = {row["consumer_name"] for row in rows if row["status"] == "applied"}
        held = held_out.note(self.replica, did)
        for change in did["checkpoints"]:
            require(change.what != "D", "nobody deletes a checkpoint")
            name = text(change.row, "name")
            if change.row["kind"] == "total":
                was = self.replica.totals.get(name)
                if name in totals and name not in reset and _stays(was, change.row):
                    continue  # a retry, below, of which other processes of this name are to know
                total = totals.pop(name, {})
                self._moves(name, change.row, total, at, is_reset=name in reset)
                then, of = self.replica.totals[name], held.pop(name, Held())
                more = held_out.passes(of, was, then, is_reset=name in reset)
                self.steps["holds out"] += more
        for name, total in totals.items():
            held_out.retries(self.replica, name, total, held.pop(name, Held()))
            self.steps["retries"] += 1
        require(not held, "what is held out changes with the total, or the checkpoint")

    def makes_wrong(self, did: Did) -> None:
        """Note a drift of a total: a millimetre too much. The books judge the other kinds."""
        [drift] = did["drifts"]
        if drift.row["kind"] == TOTAL:
            name = text(drift.row, "victim")
            was = self.replica.totals[name]
            self.replica.totals[name] = was.but(distance=was.distance + 1)
            self.replica.drifts[name] = 1
        self.steps["makes something wrong"] += 1

    def _moves(self, name: str, row: Row, counted: Row, at: float, *, is_reset: bool) -> None:
        replica = self.replica
        was, before = replica.totals.get(name), replica.met.get(name, Met())
        now = met_by(row, counted, before.distance)
        met = now.since(before)
        then = total_of(row, counted.get("total_distance"), was)
        if was is None:
            require(then == Total(), "a total begins with nothing")
        elif is_reset:
            self._resets(name, was, then)
        elif then == was:
            require(not counted, "nothing counts twice")
        else:
            self._counts(name, was, then, met, at)
            met = Met()  # as it was judged
        if counted:
            replica.require_count(name, then, counted)
        require(met == Met(), "gaps and re-sends are counted where entries are read")
        replica.totals[name], replica.met[name] = then, now
        if then != was:
            replica.moved[name] = at

    def _resets(self, name: str, was: Total, then: Total) -> None:
        replica = self.replica
        require(was.redis_id == then.redis_id, "a reset reads nothing")
        require(was.ride_id <= then.ride_id <= replica.last_sent, "no checkpoint is past last_sent")
        replica.drifts[name] = 0
        self._cut.discard(name)
        replica.require_sum(name, then, "a reset makes it right")
        self.steps["resets"] += 1

    def _counts(self, name: str, was: Total, then: Total, met: Met, at: float) -> None:
        """Entries between the two positions were read, and the other rides were healed.

        After a fault, a reader may have read other entries than the onlooker saw. So may a reader
        that a new life has set back: the log may be trimmed there by now. Then only the total is
        judged; otherwise also its counts of gaps, re-sends, and entries that are not ours.
        """
        replica = self.replica
        goes_on = was.ride_id <= then.ride_id <= replica.last_sent
        require(goes_on, "a checkpoint goes on, and is never past last_sent")
        read = self.log.between(was.redis_id, then.redis_id, at)
        since = replica.moved.get(name, replica.began)
        # Before this life, a fault may have taken what its first read would have found.
        is_back = name not in replica.moved and then.redis_id < was.redis_id
        is_older = is_back or any(one.at < replica.began for one in read)
        if is_older or self.log.may_differ(read, since, at):
            self.steps["counts, unseen"] += 1
            self._cut.discard(name)
        else:
            held = replica.held.get(name, set())
            entries = [without(one.entry, held) for one in read]
            self._counts_exactly(name, entries, was, then, met, held)
        replica.require_sum(name, then, "a total is the sum of its rides")
        counts = replica.sent_between(was.ride_id, then.ride_id)
        self.steps["counts" if counts else "counts nothing"] += 1
        self.steps["heals"] += met.gaps > 0
        self.steps["skips what was sent again"] += met.skipped > 0
        self.steps["passes what is not ours"] += met.ignored > 0

    def _counts_exactly(
        self, name: str, read: list[Entry], was: Total, then: Total, met: Met, held: set[int]
    ) -> None:
        """`held` is what the total holds out: to it, such a ride has no distance."""
        replica = self.replica
        db = Database(replica.drawn, last_sent=replica.last_sent, terms=replica.terms)
        true = specified.ours(db, read)
        last = max([was.ride_id, *(entry.ride.id for entry in true)])
        rides = replica.sent_between(was.ride_id, max(last, then.ride_id))
        known = then.ride_id if then.ride_id > last else 0
        added = (Ride(ride, 0 if ride in held else replica.rides[ride]) for ride in rides)
        db = db.but(rides=tuple(added))
        specified.counts(db, was.but(entries=tuple(read), known=known), then)
        there_was = self._met(was, then, true, held)._replace(ignored=len(read) - len(true))
        if name in self._cut:
            self._cut.remove(name)
            new = [entry for entry in true if entry.ride.id > was.ride_id]
            require(not new or new[0].prev > was.ride_id, CLOSED)
        # At the end there may be a first part of one.
        if is_cut := last < then.ride_id and met.gaps == there_was.gaps - 1:
            self._cut.add(name)
        if met != there_was._replace(gaps=there_was.gaps - is_cut):
            raise NotAllowed(f"{met} was counted, not {there_was}")

    def _met(self, was: Total, then: Total, true: list[Entry], held: set[int]) -> Met:
        """What these entries leave out up to the new ride, but for what is held out, and repeat."""
        last, gaps, skipped = was.ride_id, 0, 0
        for entry in true:
            if entry.ride.id <= last:
                skipped += 1
            else:
                gaps += last < entry.prev
                last = entry.ride.id
        gaps += last < then.ride_id
        sent = self.replica.sent_between(was.ride_id, then.ride_id)
        unsaid = {*sent} - {entry.ride.id for entry in true} - held
        distance = sum(self.replica.rides[ride] for ride in unsaid)
        rides = sum(self.replica.rides[ride] > 0 for ride in unsaid)
        return Met(gaps, rides, distance, skipped)


def _stays(was: Total | None, row: Row) -> bool:
    """Whether only the version of a checkpoint is new."""
    place = (position(text(row, "last_redis_id")), number(row, "position"))
    return was is not None and place == (was.redis_id, was.ride_id)
