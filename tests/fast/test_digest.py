"""What a batch of entries comes to, for a reader that stands at a given position."""

from decimal import Decimal

import pytest

from consumers.rides import Ride, ride
from tests.support.entries import RIDE, fields
from unified_log.log import Entry
from unified_log.readers.committed import Bounds
from unified_log.readers.digest import Digest, digest
from unified_log.readers.gaps import Gap
from unified_log.terms import Range

OURS = {b"": Range(0, 0), b"old": Range(0, 4), b"new": Range(4, 9)}
TYPES = {RIDE.encode(): ride}


def entry(at: int, number: int, prev: int, term: bytes = b"new", type_: str = RIDE) -> Entry:
    data = f'{{"id": {number}, "distance": {number}}}'
    return Entry(f"{at}-0", fields(number, data, prev, term, type_))


def record(number: int) -> Ride:
    return Ride(number, Decimal(number))


def read(*entries: Entry, stands: int = 4, last_sent: int = 9) -> Digest:
    """Of a reader that stands at a position, and has read up to the entry 10-0."""
    return digest(list(entries), stands, "10-0", Bounds(last_sent, OURS), TYPES)


@pytest.mark.proves("gap-noticed")
def test_a_prev_above_its_position_is_a_gap_before_the_record() -> None:
    result = read(entry(11, 8, 6))
    assert (result.gaps, result.records) == ([Gap(4, 6)], [record(8)])


def test_a_prev_below_its_position_is_no_gap() -> None:
    result = read(entry(11, 8, 3))
    assert (result.records, result.gaps) == ([record(8)], [])


def test_a_record_at_or_below_its_position_is_skipped_and_passed() -> None:
    result = read(entry(11, 3, 2, b"old"), entry(12, 4, 3, b"old"), entry(13, 5, 4))
    assert (result.records, result.gaps) == ([record(5)], [])
    assert (result.skipped, result.last_redis_id) == (2, "13-0")


@pytest.mark.proves("committed")
def test_a_record_past_last_sent_ends_the_batch_and_is_read_again() -> None:
    result = read(entry(11, 5, 4), entry(12, 6, 5), entry(13, 5, 4), last_sent=5)
    assert result.records == [record(5)]
    assert (result.position, result.last_redis_id, result.skipped) == (5, "11-0", 0)


@pytest.mark.proves("true-entries")
def test_an_id_outside_its_terms_range_is_passed_and_counted_as_never_committed() -> None:
    result = read(entry(11, 4, 3), entry(12, 10, 9), entry(13, 5, 4, b"old"))
    assert (result.records, result.skipped, result.last_redis_id) == ([], 0, "13-0")
    assert result.ignored.uncommitted == {b"new": 2, b"old": 1}
    assert result.ignored.foreign == {}


def test_a_term_that_is_not_ours_is_foreign_and_shows_no_gap() -> None:
    result = read(entry(11, 8, 7, b"theirs"), entry(12, 99, 98, b"theirs"), last_sent=8)
    assert (result.records, result.gaps, result.last_redis_id) == ([], [], "12-0")
    assert result.ignored.foreign == {b"theirs": 2}
    assert result.ignored.total == 2


def test_what_is_no_record_is_set_aside_with_its_reason_and_passed() -> None:
    nonsense = Entry("11-0", fields(5, "ride", 4, b"new"))
    result = read(nonsense, entry(12, 5, 4))
    [(found, reason)] = result.malformed
    assert found == nonsense
    assert reason.startswith("data is not a ride")
    assert (result.records, result.last_redis_id) == ([record(5)], "12-0")


@pytest.mark.proves("no-record")
def test_what_is_no_record_is_passed_also_at_the_end_of_a_batch() -> None:
    """Else it would be kept again and again."""
    nonsense = Entry("12-0", fields(6, "ride", 5, b"new"))
    assert read(entry(11, 5, 4), nonsense).last_redis_id == "12-0"


def test_a_gap_is_closed_once_and_only_where_there_is_one() -> None:
    result = read(entry(11, 5, 4))
    for upto in (5, 7, 7):
        result.close_gap(upto)
    assert (result.records, result.gaps) == ([record(5)], [Gap(5, 7)])
    assert result.position == 7


@pytest.mark.proves("other-types")
def test_a_record_of_another_type_passes_unread_and_the_chain_goes_on() -> None:
    other = Entry("12-0", fields(6, "no JSON", 5, b"new", "rating.create"))
    result = read(entry(11, 5, 4), other, entry(13, 7, 6))
    assert (result.records, result.gaps, result.malformed) == ([record(5), record(7)], [], [])
    assert (result.passed, result.position, result.last_redis_id) == (1, 7, "13-0")


def test_a_gap_before_a_record_of_another_type_is_a_gap() -> None:
    result = read(entry(11, 8, 6, type_="rating.create"))
    assert (result.records, result.gaps, result.position) == ([], [Gap(4, 6)], 8)


def test_data_that_is_no_ride_leaves_a_gap_in_its_place() -> None:
    result = read(Entry("11-0", fields(5, "ride", 4, b"new")), entry(12, 6, 5))
    assert (result.gaps, result.records) == ([Gap(4, 5)], [record(6)])
