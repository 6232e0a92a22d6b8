"""What chaos' checker finds in the counts: each mistake made on purpose."""

import signal
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest

from lab.chaos.accounts import FAILURES, HOUR, Account, Now, Tally, account
from lab.chaos.checker import check
from lab.chaos.counts import FinalCounts, ReaderCounts
from lab.chaos.evidence import Evidence
from lab.chaos.restore import LATE, Restore
from lab.chaos.service import ENDED, Exit
from tests.support.evidence import ONE, TWO, undisturbed

C0 = ("total", "c0")


def counts(evidence: Evidence) -> FinalCounts:
    return cast(FinalCounts, evidence.counts)


def counting(**changed: Any) -> Callable[[Evidence], None]:
    """The consumer has counted something else."""

    def change(evidence: Evidence) -> None:
        readers = counts(evidence).readers
        readers[C0] = readers[C0]._replace(**changed)

    return change


def send_another(evidence: Evidence) -> None:
    counts(evidence).sent += 1


def deliver_one_less(evidence: Evidence) -> None:
    counts(evidence).delivered -= 1


def call_one_dead(evidence: Evidence) -> None:
    counts(evidence).dead += 1


def sweep_up_too_much(evidence: Evidence) -> None:
    counts(evidence).swept = 3


def ask_for_a_reset(evidence: Evidence) -> None:
    counts(evidence).resets_asked = 1


def keep_the_log(evidence: Evidence) -> None:
    evidence.keeps_log = True


def say_it_twice(evidence: Evidence) -> None:
    evidence.accounts[C0].lines.append((54, Tally(news=1)))


def count_nothing(evidence: Evidence) -> None:
    counts(evidence).readers.clear()


WRONG: list[tuple[Callable[[Evidence], None], str]] = [
    (counting(gaps=0), "c0 counts 0 gaps healed, and not 1 to 1"),
    (counting(gaps=2), "c0 counts 2 gaps healed, and not 1 to 1"),
    (counting(rides=0), "c0 counts 0 rides healed, and not 1 to 1"),
    (counting(rides=2), "c0 counts 2 rides healed, and not 1 to 1"),
    (counting(metres=TWO - Decimal("0.001")), "c0 counts 2.017 m healed, and not 2.018 to 2.018"),
    (counting(metres=TWO + Decimal("0.001")), "c0 counts 2.019 m healed, and not 2.018 to 2.018"),
    (counting(skipped=2), "c0 counts 2 re-sends skipped, and not 3 to 3"),
    (counting(skipped=4), "c0 counts 4 re-sends skipped, and not 3 to 3"),
    (counting(crashes=1), "c0 counts 1 crashes injected, and not 2 to 2"),
    (counting(crashes=3), "c0 counts 3 crashes injected, and not 2 to 2"),
    (counting(set_aside=1), "c0 counts 1 entries set aside of 0"),
    (counting(dead_letters=1), "c0 counts 0 entries set aside of 1"),
    (counting(resets=1), "c0 counts 1 resets applied of 0"),
    (count_nothing, "c0 has counted nothing"),
    (send_another, "the streamer counts 3 records sent of 2"),
    (deliver_one_less, "workers count 1 receipts delivered of 2"),
    (sweep_up_too_much, "workers count 3 rides swept up of 2"),
    (ask_for_a_reset, "the nightly job has asked for 1 resets"),
    (keep_the_log, "c0 healed 1 rides in 1 gaps of a whole log"),
    (say_it_twice, "c0 says that it counted 3 rides of 2"),
    (call_one_dead, "workers count 1 receipts dead of 0"),
]


@pytest.mark.parametrize(("breakage", "expected"), WRONG)
def test_the_checker_finds_in_the_counts(
    breakage: Callable[[Evidence], None], expected: str
) -> None:
    evidence = undisturbed()
    assert check(evidence) == []
    breakage(evidence)
    assert check(evidence) == [expected]


def interrupt(evidence: Evidence) -> Account:
    """A process was killed, and with it a line was lost, or more."""
    found = evidence.accounts[C0]
    found.interruptions = 1
    return found


def test_what_an_interruption_may_have_left_unsaid_is_bounded() -> None:
    """By the rides that no line tells of, and by what one batch can hold."""
    evidence = undisturbed()
    interrupt(evidence)
    assert check(evidence) == []
    counting(gaps=2)(evidence)
    assert check(evidence) == ["c0 counts 2 gaps healed, and not 1 to 1"]
    evidence = undisturbed()
    del interrupt(evidence).lines[3:5]
    for skipped in (3, 23):
        counting(skipped=skipped)(evidence)
        assert check(evidence) == []
    counting(skipped=24, gaps=2)(evidence)
    assert check(evidence) == [
        "c0 counts 2 gaps healed, and not 0 to 1",
        "c0 counts 24 re-sends skipped, and not 3 to 23",
    ]


def test_a_rollup_that_was_interrupted_heals_no_ride_twice() -> None:
    """No line of it tells of the rides that it was told of, so nothing else limits it."""
    evidence, rollup = undisturbed(), ("rollup", "rollup")
    evidence.accounts[rollup] = Account([(52, Tally(gaps=1, rides=1, metres=TWO))], 1)
    all_of_them = ReaderCounts(1, 2, ONE + TWO)
    counts(evidence).readers[rollup] = all_of_them
    assert check(evidence) == []
    counts(evidence).readers[rollup] = all_of_them._replace(rides=3)
    assert check(evidence) == ["rollup counts 3 rides healed, and not 1 to 2"]
    counts(evidence).readers[rollup] = all_of_them._replace(metres=ONE + TWO * 2)
    assert check(evidence) == ["rollup counts 5.045 m healed, and not 2.018 to 3.027"]


def test_a_crash_may_be_uncounted_where_its_process_ended() -> None:
    evidence = undisturbed()
    evidence.accounts[C0].uncounted = 1
    for crashes in (1, 2):
        counting(crashes=crashes)(evidence)
        assert check(evidence) == []
    for crashes in (0, 3):
        counting(crashes=crashes)(evidence)
        assert len(check(evidence)) == 1


@pytest.mark.parametrize(
    ("began", "killed", "kept"),
    [(60 + LATE, 70 + LATE, True), (40, 60, False), (20 - LATE, 30 - LATE, True)],
    ids=["after a backup", "around a backup", "after a restore"],
)
def test_a_restore_may_have_undone_what_was_counted_around_it(
    began: float, killed: float, kept: bool
) -> None:
    evidence = undisturbed()
    evidence.restores = [Restore(began, killed)]
    assert check(evidence) == []
    counting(skipped=2, crashes=1)(evidence)
    assert len(check(evidence)) == 2 * kept
    evidence = undisturbed()
    evidence.restores = [Restore(began, killed)]
    counting(skipped=4)(evidence)
    assert len(check(evidence)) == 1


LINES = f"""\
12:00:00 INFO    c0 stands at ride 0, total 0.000 m
12:00:01 WARNING c0 healed a gap in the log: 11 rides, 6344.236 m, from ride 2 to 12
12:00:01 INFO    3 rides up to 13, total 9.001 m
12:00:01 INFO    skipped 2 rides sent again
12:00:02 WARNING injected crash after its work and before its commit: starting again from
12:00:02 INFO    c0 stands at ride 13, total 9.001 m
12:00:03 WARNING the connection is lost; trying again until it works
12:00:03 WARNING injected crash after its work and before its commit: starting again from
12:00:04 WARNING Postgres can't be reached; trying again until it works
12:00:04 INFO    waiting: Postgres can't be reached
12:00:04 {ENDED} -9, sent Signals.SIGKILL
12:00:06 INFO    rollup marked 1 ride that the log did not tell of, 5.000 m, in 2 gaps
12:00:06 WARNING injected crash after the checkpoint moved and before the minutes were computed
12:00:07 INFO    leading; every minute is right up to ride 13
12:00:09 {ENDED} 0, sent Signals.SIGTERM
"""


def test_an_account_is_what_the_lines_say(tmp_path: Path) -> None:
    log = tmp_path / "c0.log"
    log.write_text(LINES)
    exits = [Exit("c0", -9, signal.SIGKILL, 4), Exit("c0", 0, signal.SIGTERM, 4)]
    found = account([(log, exits)], Now(of_day=12 * HOUR + 10, monotonic=500))
    assert found.sum() == Tally(3, 12, Decimal("6349.236"), skipped=2, crashes=3, news=3)
    assert (found.interruptions, found.uncounted) == (1 + 3 * FAILURES + 1, 1)
    assert [at for at, _ in found.lines] == [491, 491, 491, 492, 493, 496, 496]


def test_without_counts_there_is_nothing_to_compare() -> None:
    evidence = undisturbed()
    evidence.counts, evidence.accounts = None, {}
    assert check(evidence) == []
