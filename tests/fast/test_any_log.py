"""Whatever is in the log, and in whatever order: each ride counts once, and nothing else does."""

from collections.abc import Mapping
from decimal import Decimal
from itertools import chain
from typing import NamedTuple

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from consumers.belief import Bounds
from consumers.digest import Digest, digest
from consumers.gaps import Gap
from rocket_rides.distance import MOST, is_exact
from rocket_rides.log import LARGEST_ID, Entry, Invalid, Record, decode
from rocket_rides.terms import Range, Terms
from tests.support.properties import always, briefly

IDS = st.integers(1, 40)
MILLIMETRES = st.integers(1, int(MOST * 1000))
FOREIGN = b"theirs"


class History(NamedTuple):
    """What a database knows: its rides, by id, and its terms."""

    rides: Mapping[int, Decimal]
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
        data = f'{{"id": {ride}, "distance": {self.rides[ride]}}}'
        return fields(data, prev, self.term_of(ride))

    def distance(self, after: int, upto: int) -> Decimal:
        """The exact sum over `after < id <= upto`."""
        return sum((d for ride, d in self.rides.items() if after < ride <= upto), Decimal(0))


def fields(data: str, prev: int, term: bytes) -> list[bytes]:
    return [b"data", data.encode(), b"prev", b"%d" % prev, b"term", term]


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Some rides, in a few terms, of which some are sent; few numbers were rolled back."""
    drawn = range(1, draw(st.integers(1, 20)) + 1)
    rolled_back = draw(st.sets(st.sampled_from(drawn), max_size=min(3, len(drawn) - 1)))
    ids = [ride for ride in drawn if ride not in rolled_back]
    rides = {ride: Decimal(draw(MILLIMETRES)).scaleb(-3) for ride in ids}
    begins = draw(st.lists(st.sampled_from([0, *ids]), unique=True, max_size=4).map(sorted))
    rows = [(after, f"term{i}", [f"void{i}"]) for i, after in enumerate(begins)]
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
    words = [history.entry(ride) for ride in told]
    for other in draw(st.lists(others(history), max_size=5)):
        words.insert(draw(st.integers(0, len(words))), other)
    return [Entry(f"{at}-0", entry) for at, entry in enumerate(words, start=1)]


def others(history: History) -> st.SearchStrategy[list[bytes]]:
    """What is no entry of ours about a ride: a stranger's, one under a void term, or nonsense."""
    voids = [name.encode() for _, _, names in history.rows for name in names]
    strangers = st.builds(
        lambda ride, prev, term: fields(f'{{"id": {ride}, "distance": 7}}', prev % ride, term),
        IDS, IDS, st.sampled_from([FOREIGN, *voids]),
    )  # fmt: skip
    return strangers | st.lists(st.binary(max_size=5), max_size=4)


def covered(history: History, begin: int, result: Digest) -> tuple[int, Decimal]:
    """Where the records and gaps lead, and their metres; each begins where another ends."""
    at, metres = begin, Decimal(0)
    news: list[Record | Gap] = [*result.records, *result.gaps]
    for new in sorted(news, key=lambda new: new.upto if isinstance(new, Gap) else new.id):
        if isinstance(new, Gap):
            assert (new.after, new.upto > at) == (at, True)
            at, metres = new.upto, metres + history.distance(new.after, new.upto)
        else:
            assert new.prev <= at < new.id
            at, metres = new.id, metres + new.distance
    return at, metres


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
    result = digest(entries, begin, "0-0", history.bounds)
    at, metres = covered(history, begin, result)
    assert at == result.last_ride_id <= max(begin, history.last_sent)
    assert metres == history.distance(begin, at)

    # Each entry is one thing, and the batch ends before what is not committed.
    count = passed(entries, result)
    not_taken = result.skipped + len(result.set_aside) + result.not_ours.total
    assert count == len(result.records) + not_taken
    assert set(result.not_ours.foreign) <= {FOREIGN, b""}
    for entry in entries[count : count + 1]:
        assert decode(entry.fields).id > history.last_sent

    # It does not matter where a batch ends.
    cut = data.draw(st.integers(0, len(entries)))
    first = digest(entries[:cut], begin, "0-0", history.bounds)
    rest = entries[passed(entries, first) :]
    second = digest(rest, first.last_ride_id, first.last_redis_id, history.bounds)
    assert first.records + second.records == result.records
    assert first.gaps + second.gaps == result.gaps
    assert (second.last_ride_id, second.last_redis_id) == (at, result.last_redis_id)
    assert first.skipped + second.skipped == result.skipped
    assert first.set_aside + second.set_aside == result.set_aside

    result.close_gap(history.last_sent)
    at, metres = covered(history, begin, result)
    assert (at, metres) == (history.last_sent, history.distance(begin, history.last_sent))


RECORD = fields('{"id": 5, "distance": 5.5}', 4, b"term")
PAIRS = [RECORD[:2], RECORD[2:4], RECORD[4:]]
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
    except Invalid:
        reject()
    values = dict(zip(words[::2], words[1::2], strict=False))
    assert (record.prev, record.term) == (int(values[b"prev"]), values.get(b"term", b""))
    assert 0 <= record.prev < record.id <= LARGEST_ID
    assert is_exact(record.distance)
