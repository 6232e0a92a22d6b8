"""The demands: what happens in each, step by step. A docstring is a title in the table.

In the end all that was committed must be there, in the order of the positions that were drawn. What
no open transaction concerns must be there at once.
"""

from contextlib import suppress
from itertools import combinations_with_replacement

import psycopg

from tests.conformance.outbox import KINDS, Event
from tests.conformance.trial import Trial, Writer

ELSEWHERE = "CREATE TABLE elsewhere (); INSERT INTO elsewhere DEFAULT VALUES"


def late_commit(trial: Trial) -> None:
    """A lower number commits after a higher one"""
    slow = Writer(trial)
    slow.add()
    trial.another_commits()
    trial.drain()
    slow.commit()


def very_late_commit(trial: Trial) -> None:
    """A lower number commits long after a higher one"""
    slow = Writer(trial)
    slow.add()
    trial.another_commits()
    trial.a_minute_passes()
    slow.commit()


def late_insert(trial: Trial) -> None:
    """A transaction inserts its record after a younger one has committed"""
    old = Writer(trial)
    old.connection.execute(ELSEWHERE)
    trial.another_commits()
    trial.drain()
    old.add()
    old.commit()


def early_number(trial: Trial) -> None:
    """A number is drawn long before its record is inserted"""
    trial.another_commits()  # else the sequence is new, and drawing gives the transaction an id
    slow = Writer(trial)
    slow.draw()
    trial.another_commits()
    trial.a_minute_passes()
    slow.insert()
    slow.commit()


def several_kinds(trial: Trial) -> None:
    """Two kinds of records, in tables of their own, share one order"""
    first, second = KINDS
    slow = Writer(trial)
    slow.add(first)
    trial.another_commits(second)
    trial.another_commits(first)
    trial.a_minute_passes()
    slow.commit()


def between_looks(trial: Trial) -> None:
    """One writer draws, another draws and commits, the first commits: each of these steps between
    any two statements of the leader"""
    slow = Writer(trial)
    trial.another_commits()
    statements = trial.drain_amid()
    for draws, other, commits in combinations_with_replacement(range(statements + 1), 3):
        trial.another_commits()  # for the leader to send meanwhile
        trial.drain_amid((draws, slow.add), (other, trial.another_commits), (commits, slow.commit))
        trial.drain()


def roll_back(trial: Trial) -> None:
    """A number is rolled back"""
    doomed = Writer(trial)
    doomed.add()
    trial.another_commits()
    trial.drain()
    doomed.connection.rollback()


def savepoint_after(trial: Trial) -> None:
    """A transaction draws, rolls back to a later savepoint, and commits late"""
    slow = Writer(trial)
    slow.add()
    with slow.undone():
        slow.add()
    trial.another_commits()
    trial.a_minute_passes()
    slow.commit()


def savepoint_before(trial: Trial) -> None:
    """A transaction draws, rolls back to an earlier savepoint, and uses the number all the same"""
    trial.another_commits()  # as in `early_number`
    slow = Writer(trial)
    with slow.undone():
        slow.draw()
    trial.another_commits()
    trial.a_minute_passes()
    slow.insert()
    slow.commit()


def prepared(trial: Trial) -> None:
    """A prepared transaction commits late"""
    slow = Writer(trial)
    slow.connection.tpc_begin(trial.name)
    slow.add()
    slow.connection.tpc_prepare()
    try:
        trial.another_commits()
        trial.a_minute_passes()
    finally:  # it would outlive its database
        slow.connection.tpc_commit()
    slow.has_committed()


def second_leader(trial: Trial) -> None:
    """A second leader drains while the first is about to send"""
    trial.another_commits()
    first = trial.leader

    def second_drains() -> None:
        trial.another_commits()
        trial.lead()
        trial.drain()

    first.drain(once(second_drains))
    trial.leader = first


def hanging_leader(trial: Trial) -> None:
    """A leader hangs, loses its session, and goes on after another has led: at any statement, and
    before it sends"""
    trial.another_commits()
    statements = trial.drain_amid()

    def replaced() -> None:
        trial.outbox.read()
        trial.end_session()
        trial.lead()
        trial.drain()
        trial.another_commits()
        trial.drain()

    for statement in range(statements):
        trial.another_commits()
        with suppress(psycopg.Error):
            trial.drain_amid((statement, replaced))
    trial.another_commits()
    with suppress(psycopg.Error):
        trial.leader.drain(once(replaced))


def restore(trial: Trial) -> None:
    """Postgres is restored to an earlier time, and the log is ahead"""
    trial.another_commits()
    trial.drain()
    with trial.lost():
        for _ in range(50):  # after a crash a sequence is 32 numbers ahead: the others come again
            trial.another_commits()
        trial.drain()
    for _ in range(5):
        trial.another_commits()


def idle_transaction(trial: Trial) -> None:
    """A transaction is open that has done nothing"""
    idle = trial.connect(trial.name)
    idle.execute("SELECT 1")
    nothing_waits_for(idle, trial)


def long_report(trial: Trial) -> None:
    """A report reads from one old snapshot"""
    report = trial.connect(trial.name)
    report.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    report.execute("SELECT count(*) FROM pg_class")
    nothing_waits_for(report, trial)


def long_writer(trial: Trial) -> None:
    """A transaction is open that has written elsewhere, and drawn no number"""
    writer = trial.connect(trial.name)
    writer.execute(ELSEWHERE)
    nothing_waits_for(writer, trial)


def another_database(trial: Trial) -> None:
    """A transaction is open in another database of the server, and has written there"""
    writer = trial.connect("postgres")
    writer.execute(ELSEWHERE)
    nothing_waits_for(writer, trial)


def nothing_waits_for(transaction: psycopg.Connection, trial: Trial) -> None:
    trial.another_commits()
    trial.all_must_be_there()
    transaction.rollback()


def once(step: Event) -> Event:
    """The same, which does nothing when it is called again."""
    steps = [step]
    return lambda: steps.pop()() if steps else None
