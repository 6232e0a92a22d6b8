"""What a reader believes of each term, from the rows of the table `terms`."""

import pytest

from unified_log.terms import NO_TERM, Range, Terms

# A streamer led from ride 10; a second one, from 20, after another that committed nothing.
ROWS = [(10, "a", []), (20, "c", ["b"])]


def test_before_the_first_term_all_is_believed_that_was_drawn() -> None:
    assert Terms().update([], 5) == {NO_TERM: Range(0, 5)}


def test_a_term_ends_where_the_next_begins_and_the_newest_with_what_was_drawn() -> None:
    assert Terms().update(ROWS, 25) == {
        NO_TERM: Range(0, 10),
        b"a": Range(10, 20),
        b"b": Range(20, 20),
        b"c": Range(20, 25),
    }


def test_without_rows_what_is_known_stays_and_the_newest_reaches_further() -> None:
    terms = Terms()
    known = dict(terms.update(ROWS, 25))
    assert terms.newest == "c"
    assert terms.update(None, 31) == known | {b"c": Range(20, 31)}


@pytest.mark.proves("restored")
def test_a_restored_database_forgets_the_terms_that_it_has_lost() -> None:
    terms = Terms()
    terms.update(ROWS, 25)
    assert terms.update(ROWS[:1], 15) == {NO_TERM: Range(0, 10), b"a": Range(10, 15)}
    assert terms.newest == "a"


def test_a_database_that_has_lost_all_its_terms_has_no_newest() -> None:
    terms = Terms()
    terms.update(ROWS, 25)
    assert terms.update([], 3) == {NO_TERM: Range(0, 3)}
    assert terms.newest is None


def test_a_reader_that_knows_nothing_asks_for_all() -> None:
    """No term has the name that it says it knows, nor is it what an empty table tells: NULL."""
    assert Terms().newest == ""
