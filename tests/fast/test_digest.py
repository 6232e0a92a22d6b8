"""What a batch of entries comes to, for a reader that stands at a given ride."""

from decimal import Decimal

import pytest

from consumers.belief import Bounds
from consumers.digest import Digest, digest
from consumers.gaps import Gap
from rocket_rides.log import Entry, Record
from rocket_rides.terms import Range

OURS = {b"": Range(0, 0), b"old": Range(0, 4), b"new": Range(4, 9)}


def entry(at: int, number: int, prev: int, term: bytes = b"new") -> Entry:
    data = b'{"id": %d, "distance": %d}' % (number, number)
    return Entry(f"{at}-0", [b"data", data, b"prev", b"%d" % prev, b"term", term])


def record(number: int, prev: int, term: bytes = b"new") -> Record:
    return Record(number, prev, Decimal(number), term)


def read(*entries: Entry, stands: int = 4, last_sent: int = 9) -> Digest:
    """Of a reader that stands at a ride, and has read up to the entry 10-0."""
    return digest(list(entries), stands, "10-0", Bounds(last_sent, OURS))


@pytest.mark.proves("gap-noticed")
def test_a_prev_above_the_readers_ride_is_a_gap_before_the_record() -> None:
    result = read(entry(11, 8, 6))
    assert (result.gaps, result.records) == ([Gap(4, 6)], [record(8, 6)])


def test_a_prev_below_the_readers_ride_is_no_gap() -> None:
    result = read(entry(11, 8, 3))
    assert (result.records, result.gaps) == ([record(8, 3)], [])


def test_a_record_at_or_below_the_readers_ride_is_skipped_and_passed() -> None:
    result = read(entry(11, 3, 2, b"old"), entry(12, 4, 3, b"old"), entry(13, 5, 4))
    assert (result.records, result.gaps) == ([record(5, 4)], [])
    assert (result.skipped, result.last_redis_id) == (2, "13-0")


@pytest.mark.proves("committed")
def test_a_record_past_last_sent_ends_the_batch_and_is_read_again() -> None:
    result = read(entry(11, 5, 4), entry(12, 6, 5), entry(13, 5, 4), last_sent=5)
    assert result.records == [record(5, 4)]
    assert (result.last_ride_id, result.last_redis_id, result.skipped) == (5, "11-0", 0)


@pytest.mark.proves("true-entries")
def test_an_id_outside_its_terms_range_is_passed_and_counted_as_never_committed() -> None:
    result = read(entry(11, 4, 3), entry(12, 10, 9), entry(13, 5, 4, b"old"))
    assert (result.records, result.skipped, result.last_redis_id) == ([], 0, "13-0")
    assert result.not_ours.uncommitted == {b"new": 2, b"old": 1}
    assert result.not_ours.foreign == {}


def test_a_term_that_is_not_ours_is_foreign_and_shows_no_gap() -> None:
    result = read(entry(11, 8, 7, b"theirs"), entry(12, 99, 98, b"theirs"), last_sent=8)
    assert (result.records, result.gaps, result.last_redis_id) == ([], [], "12-0")
    assert result.not_ours.foreign == {b"theirs": 2}
    assert result.not_ours.total == 2


def test_what_is_no_record_is_set_aside_with_its_reason_and_passed() -> None:
    nonsense = Entry("11-0", [b"data", b"ride", b"prev", b"4"])
    result = read(nonsense, entry(12, 5, 4))
    [(found, reason)] = result.set_aside
    assert found == nonsense
    assert reason.startswith("data is not a record")
    assert (result.records, result.last_redis_id) == ([record(5, 4)], "12-0")


@pytest.mark.proves("no-record")
def test_what_is_no_record_is_passed_also_at_the_end_of_a_batch() -> None:
    """Else it would be set aside again and again."""
    nonsense = Entry("12-0", [b"data", b"ride", b"prev", b"4"])
    assert read(entry(11, 5, 4), nonsense).last_redis_id == "12-0"


def test_a_gap_is_closed_once_and_only_where_there_is_one() -> None:
    result = read(entry(11, 5, 4))
    for upto in (5, 7, 7):
        result.close_gap(upto)
    assert (result.records, result.gaps) == ([record(5, 4)], [Gap(5, 7)])
    assert result.last_ride_id == 7
