"""Whatever is in the log, and in whatever order: each ride counts once, and nothing else does."""

import re
from collections.abc import Mapping
from decimal import Decimal
from itertools import chain
from typing import NamedTuple

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from consumers.rides import Ride, ride
from rocket_rides.distance import MOST, is_exact
from tests.support.entries import RIDE, fields
from tests.support.properties import always, briefly
from unified_log.log import LARGEST_ID, Entry, Invalid, decode
from unified_log.readers.committed import Bounds
from unified_log.readers.digest import Digest, digest
from unified_log.readers.gaps import Gap
from unified_log.terms import Range, Terms
from unified_log.tracing import Trace

IDS = st.integers(1, 40)
MILLIMETRES = st.integers(1, int(MOST * 1000))
FOREIGN = b"theirs"
PARENT = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
# What may be a trace: one of its bytes may be another, or too many, or missing.
PARENTS = st.just(PARENT) | st.builds(
    lambda at, byte: PARENT[:at] + byte + PARENT[at + 1 :],
    st.integers(0, len(PARENT)),
    st.binary(max_size=1),
)
STATES = st.just(b"a=1") | st.binary(max_size=8)
NO_TRACE: list[bytes] = []
TRACES = st.just(NO_TRACE) | st.builds(
    lambda parent, state: [b"traceparent", parent, b"tracestate", state], PARENTS, STATES
)
HEADERS = re.compile("00-[0-9a-f]{32}-[0-9a-f]{16}-0[0-3] [\t -~]*")


class History(NamedTuple):
    """What a database knows: its records, by position, and its terms.

    A ride has a distance; a record of another type has none.
    """

    rides: Mapping[int, Decimal | None]
    rows: list[tuple[int, str, list[str]]]
    last_drawn: int
    last_sent: int

    @property
    def terms(self) -> Mapping[bytes, Range]:
        return Terms().update(self.rows, self.last_drawn)

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.last_sent, self.terms)

    def term_of(self, ride: int) -> bytes:
        """Of the leader that sent it: the last that began below."""
        return max(((a, t) for a, t, _ in self.rows if a < ride), default=(0, ""))[1].encode()

    def entry(self, ride: int) -> list[bytes]:
        prev = max((other for other in self.rides if other < ride), default=0)
        if self.rides[ride] is None:
            return fields(ride, "no JSON", prev, self.term_of(ride), "rating.create")
        data = f'{{"id": {ride}, "distance": {self.rides[ride]}}}'
        return fields(ride, data, prev, self.term_of(ride))

    def distance(self, after: int, upto: int) -> Decimal:
        """The exact sum over `after < id <= upto`."""
        known = (d for ride, d in self.rides.items() if d and after < ride <= upto)
        return sum(known, Decimal(0))


def read(entries: list[Entry], position: int, redis_id: str, bounds: Bounds) -> Digest:
    return digest(entries, position, redis_id, bounds, {RIDE.encode(): ride})


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Some rides, in a few terms, of which some are sent; few numbers were rolled back."""
    drawn = range(1, draw(st.integers(1, 20)) + 1)
    rolled_back = draw(st.sets(st.sampled_from(drawn), max_size=min(3, len(drawn) - 1)))
    ids = [ride for ride in drawn if ride not in rolled_back]
    distances = MILLIMETRES.map(lambda given: Decimal(given).scaleb(-3)) | st.none()
    rides = {ride: draw(distances) for ride in ids}
    begins = draw(st.lists(st.sampled_from([0, *ids]), unique=True, max_size=4).map(sorted))
    rows = [(after, f"term{i}", [f"replaced{i}"]) for i, after in enumerate(begins)]
    last_sent = draw(st.just(ids[-1]) | st.sampled_from([0, *ids]))
    return History(rides, rows, ids[-1], max(last_sent, begins[-1] if begins else 0))


@st.composite
def logs(draw: st.DrawFn, history: History) -> list[Entry]:
    """Entries that tell of rides, with others between them.

    Of each ride, but for a few that the log has lost; or of any, again and in any order.
    """
    lost = draw(st.sets(st.sampled_from([*history.rides]), max_size=2))
    told = draw(
        st.just([ride for ride in history.rides if ride not in lost])
        | st.lists(st.sampled_from([*history.rides]), max_size=20)
    )
    words = [history.entry(ride) + draw(TRACES) for ride in told]
    for other in draw(st.lists(others(history), max_size=5)):
        words.insert(draw(st.integers(0, len(words))), other)
    return [Entry(f"{at}-0", entry) for at, entry in enumerate(words, start=1)]


def others(history: History) -> st.SearchStrategy[list[bytes]]:
    """No entry of ours about a ride: a stranger's, one under a replaced term, or nonsense."""
    replaced = [name.encode() for _, _, names in history.rows for name in names]
    strangers = st.builds(
        lambda ride, prev, term: fields(ride, '{"distance": 7}', prev % ride, term),
        IDS, IDS, st.sampled_from([FOREIGN, *replaced]),
    )  # fmt: skip
    return strangers | st.lists(st.binary(max_size=5), max_size=4)


def covered(history: History, begin: int, result: Digest) -> Decimal:
    """The metres of the records and gaps; each lies behind the one before it."""
    at, metres = begin, Decimal(0)
    news: list[Ride | Gap] = [*result.records, *result.gaps]
    for new in sorted(news, key=lambda new: new.upto if isinstance(new, Gap) else new.id):
        if isinstance(new, Gap):
            assert at <= new.after < new.upto
            at, metres = new.upto, metres + history.distance(new.after, new.upto)
        else:
            assert at < new.id
            at, metres = new.id, metres + new.distance
    return metres


def can_be_sent_on(trace: Trace | None) -> bool:
    """Nobody refuses a request with these headers."""
    return trace is None or bool(HEADERS.fullmatch(f"{trace.parent} {trace.state}"))


def passed(entries: list[Entry], result: Digest) -> int:
    ids = [entry.redis_id for entry in entries]
    return ids.index(result.last_redis_id) + 1 if result.last_redis_id in ids else 0


@pytest.mark.proves("any-log")
@always
@given(st.data())
def test_each_ride_counts_once_whatever_the_log_holds(data: st.DataObject) -> None:
    """Records and gaps are the rides up to where they lead, none twice and none left out."""
    history = data.draw(histories())
    entries = data.draw(logs(history))
    begin = data.draw(st.sampled_from([0, *(r for r in history.rides if r <= history.last_sent)]))
    result = read(entries, begin, "0-0", history.bounds)
    assert result.position <= max(begin, history.last_sent)
    assert covered(history, begin, result) == history.distance(begin, result.position)

    assert result.traces.keys() <= {new.id for new in result.records}
    assert all(map(can_be_sent_on, result.traces.values()))

    # Each entry is one thing, and the batch ends before what is not committed.
    count = passed(entries, result)
    not_taken = result.skipped + result.passed + len(result.malformed) + result.ignored.total
    assert count == len(result.records) + not_taken
    assert set(result.ignored.foreign) <= {FOREIGN, b""}
    for entry in entries[count : count + 1]:
        assert decode(entry.fields).id > history.last_sent

    # It does not matter where a batch ends.
    cut = data.draw(st.integers(0, len(entries)))
    first = read(entries[:cut], begin, "0-0", history.bounds)
    rest = entries[passed(entries, first) :]
    second = read(rest, first.position, first.last_redis_id, history.bounds)
    assert first.records + second.records == result.records
    assert first.gaps + second.gaps == result.gaps
    assert (second.position, second.last_redis_id) == (result.position, result.last_redis_id)
    assert first.skipped + second.skipped == result.skipped
    assert first.malformed + second.malformed == result.malformed

    result.close_gap(history.last_sent)
    assert result.position == history.last_sent
    assert covered(history, begin, result) == history.distance(begin, history.last_sent)


RECORD = fields(5, '{"id": 5, "distance": 5.5}', 4, b"term")
RECORD += [b"traceparent", PARENT, b"tracestate", b"a=1"]
PAIRS = [RECORD[start : start + 2] for start in range(0, len(RECORD), 2)]
WORDS = st.sampled_from([*RECORD, b"0", b"5"]) | st.binary(max_size=8)
# Those of a record, in any order, of which a few are others, or more.
CHANGED = st.builds(
    lambda record, begin, words: [*record[:begin], *words, *record[begin + len(words) :]],
    st.permutations(PAIRS).map(lambda pairs: [*chain.from_iterable(pairs)]),
    st.integers(0, len(RECORD)),
    st.lists(WORDS, max_size=2),
)
FIELDS = st.one_of(CHANGED, CHANGED, CHANGED, st.lists(WORDS))


@briefly
@given(FIELDS)
def test_any_fields_are_a_record_or_refused(words: list[bytes]) -> None:
    """Hypothesis itself fails where nearly all are refused."""
    try:
        record = decode(words)
        taken = ride(record)
    except Invalid:
        reject()
    values = dict(zip(words[::2], words[1::2], strict=False))
    assert (record.prev, record.term) == (int(values[b"prev"]), values.get(b"term", b""))
    assert 0 <= record.prev < record.id <= LARGEST_ID
    assert (taken.id, is_exact(taken.distance)) == (record.id, True)
    assert can_be_sent_on(record.trace)
