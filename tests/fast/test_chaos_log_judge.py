"""What the judge of the books finds in the log: each mistake made on purpose."""

from collections.abc import Callable
from decimal import Decimal

import msgspec
import pytest

from lab.chaos.books.judge import check
from lab.chaos.books.log import Story
from lab.chaos.evidence import Evidence
from lab.chaos.observer import Reading, Told
from rocket_rides.log import Record
from tests.support.evidence import GONE, LATER, MEANWHILE, THEIRS, TWO, sound

LATE, ENDED = "has ride 1 after ride 3, but not before", "has ride 1, of a term that had ended"
NOBODYS = "an entry that nobody can have written"


def turn_the_log_round(evidence: Evidence) -> None:
    evidence.told.reverse()


def see_nothing(evidence: Evidence) -> None:
    evidence.told.clear()


def tell(evidence: Evidence, record: Record, at: float = LATER) -> None:
    evidence.told.append(Told(record, at))
    evidence.read_again = evidence.left_unread = True  # let the counts alone


def break_the_chain(evidence: Evidence) -> None:
    tell(evidence, Record(3, 0, TWO, b"second"))


def forge_an_entry(evidence: Evidence) -> None:
    tell(evidence, Record(2, 1, Decimal("5.000"), b"second"))


def believe_a_stranger(evidence: Evidence) -> None:
    evidence.final.terms[THEIRS.term] = (1, 3)


def write_in_nobodys_term(evidence: Evidence) -> None:
    """The ride is there: but no restore explains an entry of so long after it."""
    tell(evidence, Record(3, 1, TWO, b"nobody's"), 200)


def write_without_a_term(evidence: Evidence) -> None:
    tell(evidence, Record(3, 1, TWO), 200)


def write_past_the_end_of_a_term(evidence: Evidence) -> None:
    tell(evidence, Record(4, 3, Decimal("5.000"), b"first"))


def commit_nothing_of_another_chain(evidence: Evidence) -> None:
    tell(evidence, Record(3, 0, TWO, b"void"), 200)


def lose_a_past_before_the_backup(evidence: Evidence) -> None:
    tell(evidence, Record(3, 1, GONE, b"lost"), 99)


def lose_a_past_that_nobody_asked_for(evidence: Evidence) -> None:
    tell(evidence, Record(3, 1, Decimal("0.5"), b"lost"), MEANWHILE)


def lose_a_past_that_was_asked_for_later(evidence: Evidence) -> None:
    evidence.asks[3].asked_at = 111


def send_a_lost_past_for_ever(evidence: Evidence) -> None:
    tell(evidence, Record(3, 1, GONE, b"lost"), 200)


def blame_a_stranger_that_never_was(evidence: Evidence) -> None:
    evidence.foreign.clear()
    evidence.restores.clear()


def believe_one_more_not(evidence: Evidence) -> None:
    evidence.final.unbelieved["c0"] = 4
    evidence.left_unread = True


def believe_one_less_not(evidence: Evidence) -> None:
    evidence.final.unbelieved["c0"] = 2
    evidence.read_again = True


def both() -> tuple[Evidence, Record, Record]:
    """Sound evidence, and its true entries: of ride 1, and of ride 3, sent under another term."""
    evidence = sound()
    [first], [_, second] = (
        [told.record for told in evidence.told if told.record.term == term]
        for term in (b"first", b"second")
    )
    return evidence, first, second


def test_another_log_may_have_what_was_missed_but_in_its_order() -> None:
    evidence, first, second = both()
    for found in ([first, second], [first], [first, second, second]):
        evidence.readings = [Reading([second]), Reading(found, len(found))]
        assert check(evidence) == []
    evidence.readings = [Reading([second]), Reading([second, first], found=2)]
    assert ENDED in "\n".join(check(evidence))


def test_a_term_that_has_ended_sends_nothing_more_not_even_what_was_seen() -> None:
    evidence, first, second = both()
    evidence.readings = [Reading([first, second, first])]
    assert f"{ENDED}, after ride 3" in "\n".join(check(evidence))


def test_in_the_same_log_begun_again_nothing_may_be_missing_before() -> None:
    evidence, first, second = both()
    for read in ([first], [first, second]):
        evidence.readings = [Reading([second]), Reading(read)]
        assert LATE in "\n".join(check(evidence))


def test_a_batch_that_is_sent_again_may_bring_what_was_trimmed_before_it_was_seen() -> None:
    """Redis was full: half of the first copy went, to make room for the second."""
    evidence, first, second = both()
    evidence.readings = [Reading([second, first, second])]
    assert ENDED in "\n".join(check(evidence))  # another leader's batch
    evidence.final.terms = {b"second": (0, 3)}
    first = msgspec.structs.replace(first, term=b"second")
    evidence.readings = [Reading([second, first, second])]
    assert LATE not in "\n".join(check(evidence))
    for read in ([second, first, first, second], [second, first]):
        evidence.readings = [Reading(read)]
        assert LATE in "\n".join(check(evidence))


def test_a_ride_that_waited_for_the_standby_in_vain_may_be_in_the_log() -> None:
    evidence = sound()
    evidence.in_vain, evidence.restores = evidence.restores, []
    evidence.blamed.clear()
    told = [told for told in evidence.told if told.record.term == b"lost"]
    assert [Story(evidence).why(each) for each in told] == ["unanswered"]
    assert NOBODYS not in "\n".join(check(evidence))
    assert "4.036 m was answered (as [3]) and is lost" in "\n".join(check(evidence))
    evidence.in_vain.clear()
    assert NOBODYS in "\n".join(check(evidence))


@pytest.mark.parametrize(
    ("breakage", "expected"),
    [
        (turn_the_log_round, ENDED),
        (see_nothing, "the onlooker saw no true entry"),
        (break_the_chain, "prev of ride 3 is 0, not 1"),
        (forge_an_entry, "ride 2 of 5.000 m, which does not exist"),
        (believe_a_stranger, "ride 2 of 7.000 m, which does not exist"),
        (write_in_nobodys_term, NOBODYS),
        (write_without_a_term, NOBODYS),
        (write_past_the_end_of_a_term, NOBODYS),
        (commit_nothing_of_another_chain, NOBODYS),
        (lose_a_past_before_the_backup, NOBODYS),
        (lose_a_past_that_nobody_asked_for, NOBODYS),
        (lose_a_past_that_was_asked_for_later, NOBODYS),
        (send_a_lost_past_for_ever, NOBODYS),
        (blame_a_stranger_that_never_was, "c0: WARNING c0 skipped 2 entries"),
        (believe_one_more_not, "c0 did not believe 4 entries, but 3 are untrue"),
        (believe_one_less_not, "c0 did not believe 2 entries, but 3 are untrue"),
    ],
)
def test_the_judge_finds_in_the_log(breakage: Callable[[Evidence], None], expected: str) -> None:
    evidence = sound()
    assert check(evidence) == []
    breakage(evidence)
    assert expected in "\n".join(check(evidence))
