"""Which minutes of the rollup are compared, and which are wrong, while the rollup goes on.

A rollup in memory works in random steps, beside rides that are taken, sent and repaired; the real
comparison looks at it at some moment. It finds no drift where there is none, and misses none.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from hypothesis import assume, given
from hypothesis import strategies as st

from analytics.minutes import Minute
from analytics.proofs.rollup import Rows, comparable, differs, judge
from analytics.result import NOTHING, Tally
from tests.support.properties import briefly

START = datetime(2026, 3, 1, 10, 58, tzinfo=UTC)
MINUTES = [START + timedelta(minutes=number) for number in range(3)]
MILLIMETRE = Decimal("0.001")


class Ride(NamedTuple):
    id: int
    minute: datetime


def added_up(rides: Sequence[Ride]) -> dict[datetime, Minute]:
    """One by one; a ride has as many metres as its id says."""
    found: dict[datetime, Minute] = {}
    for ride in sorted(rides):
        one = found.get(ride.minute, Minute(0, Decimal(0), ride.id, ride.id))
        found[ride.minute] = Minute(one.rides + 1, one.distance + ride.id, one.first, ride.id)
    return found


class Rollup:
    """What the real one promises, and no more."""

    def __init__(self) -> None:
        self.rides: list[Ride] = []
        self.held: list[Ride] = []  # drawn, but in a transaction that the log did not wait for
        self.drawn = self.last_sent = self.complete_to = self.set_backs = 0
        self.kept: dict[datetime, Tally] = {}
        self.dirty: dict[datetime, int] = {}  # and its lowest ride

    def take(self, minute: datetime) -> None:
        self.drawn += 1
        self.rides.append(Ride(self.drawn, minute))

    def hold(self, minute: datetime) -> None:
        self.drawn += 1
        self.held.append(Ride(self.drawn, minute))

    def send(self, _minute: datetime) -> None:
        self._mark(self.last_sent)
        self.last_sent = self.drawn

    def _mark(self, after: int) -> None:
        for ride in self.rides:
            if ride.id > after:
                lowest = min(ride.id, self.dirty.get(ride.minute, ride.id))
                self.dirty[ride.minute] = lowest

    def compute(self, minute: datetime) -> None:
        """Whether it is dirty or not."""
        self.kept[minute] = added_up(self.upto(self.last_sent)).get(minute, NONE).tally
        self.dirty.pop(minute, None)

    def complete(self, _minute: datetime) -> None:
        lowest = min(self.dirty.values(), default=self.last_sent + 1)
        self.complete_to = max(self.complete_to, lowest - 1)

    def roll_up(self, other: datetime) -> None:
        """All that is dirty, but for one minute."""
        for minute in [*self.dirty]:
            if minute != other or self.dirty[minute] % 3:
                self.compute(minute)
        self.complete(other)

    def repair(self, _minute: datetime) -> None:
        late = [ride for ride in self.held if ride.id <= self.last_sent]
        if late:
            self.set_backs += 1
            self.held = [ride for ride in self.held if ride not in late]
            self.rides += late
            self.complete_to = min(self.complete_to, late[0].id - 1)
            self._mark(self.complete_to)

    def upto(self, ride_id: int) -> list[Ride]:
        return [ride for ride in self.rides if ride.id <= ride_id]

    def rows(self, frozen: int) -> Rows:
        upto = min(frozen, self.complete_to)
        later = {ride.minute for ride in self.upto(self.last_sent) if ride.id > upto}
        return Rows(upto, dict(self.kept), set(), later)


NONE = Minute(0, Decimal(0), 0, 0)
OFTEN = [Rollup.take, Rollup.send, Rollup.roll_up]
SELDOM = [Rollup.hold, Rollup.compute, Rollup.complete, Rollup.repair]
STEP = st.tuples(st.sampled_from(OFTEN * 3 + SELDOM), st.sampled_from(MINUTES))
STEPS = st.lists(STEP, min_size=8, max_size=16)


class Look(NamedTuple):
    """What Spark has added up to the frozen ride, and the rollup as it is some steps later.

    Where rides were repaired meanwhile, nothing is compared.
    """

    exact: dict[datetime, Minute]
    rows: Rows
    rollup: Rollup


@st.composite
def looks(draw: st.DrawFn) -> Look:
    rollup = Rollup()
    pieces = []
    for _ in range(2):
        for step, minute in draw(STEPS):
            step(rollup, minute)
        pieces.append(rollup.last_sent)
        if len(pieces) == 1:
            exact, set_backs = added_up(rollup.upto(rollup.last_sent)), rollup.set_backs
    assume(rollup.set_backs == set_backs)
    return Look(exact, rollup.rows(pieces[0]), rollup)


def recounted(look: Look) -> dict[datetime, Minute]:
    return added_up(look.rollup.upto(look.rows.upto))


@briefly
@given(looks(), st.sampled_from(MINUTES))
def test_a_rollup_that_goes_on_is_never_called_wrong(look: Look, aside: datetime) -> None:
    """Nor is a minute that it has set aside compared."""
    minutes = comparable(look.exact, look.rows)
    without = comparable(look.exact, look.rows._replace(set_aside={aside}))
    assert without == [minute for minute in minutes if minute != aside]
    differ = [minute for minute in minutes if differs(minute, look.exact, look.rows)]
    assert judge(differ, look.exact, recounted(look), look.rows) == ([], [])


@briefly
@given(looks())
def test_a_minute_that_is_complete_is_compared_and_any_change_is_noticed(look: Look) -> None:
    settled = added_up(look.rollup.upto(look.rollup.last_sent))
    complete = {minute: one for minute, one in settled.items() if one.last <= look.rows.upto}
    assert set(complete) <= set(comparable(look.exact, look.rows))
    seen = [minute for minute, one in complete.items() if look.exact.get(minute) == one]
    for minute in seen:
        others = {other: kept for other, kept in look.rows.kept.items() if other != minute}
        missing = look.rows._replace(kept=others)
        assert minute in comparable(look.exact, missing)
        assert differs(minute, look.exact, missing)
        exact = look.exact[minute].tally
        for wrong in (
            Tally(exact.rides, exact.distance + MILLIMETRE),
            Tally(exact.rides + 1, exact.distance),
            NOTHING,
        ):
            rows = look.rows._replace(kept={**look.rows.kept, minute: wrong})
            assert differs(minute, look.exact, rows)
            [found], mismatches = judge([minute], look.exact, recounted(look), rows)
            assert mismatches == []
            assert (found.rolled_up, found.exact) == (wrong, exact)
            assert found.lowest_ride_id == look.exact[minute].first


def test_a_row_without_rides_is_wrong_unless_it_is_empty() -> None:
    rows = Rows(7, {MINUTES[0]: Tally(1, Decimal(1)), MINUTES[1]: NOTHING}, set(), set())
    assert [minute for minute in comparable({}, rows) if differs(minute, {}, rows)] == MINUTES[:1]
    [wrong], _ = judge(MINUTES[:1], {}, {}, rows)
    assert (wrong.exact, wrong.lowest_ride_id) == (NOTHING, 7)
    [wrong], _ = judge(MINUTES[:1], {}, {}, rows._replace(upto=0))
    assert wrong.lowest_ride_id == 1  # there is no ride 0
