"""`make break` beside a running fleet: what breaks, what heals, and what a person is told."""

import re
import signal
from functools import partial

import psutil
import psycopg
import pytest

from demo.breaking.running_fleet import TOTALS, running_fleet
from tests.support.honcho import Fleet, person, told
from tests.support.world import PATIENCE, eventually

HEALED = ("totals are exact", "minutes are complete", "receipts are delivered or dead letters")


def consumer1(fleet: Fleet) -> psutil.Process:
    totals = running_fleet(fleet.config).of(TOTALS)
    [process] = [each.process for each in totals if each.name == "consumer1"]
    return process


def is_frozen(process: psutil.Process) -> bool:
    return process.status() == psutil.STATUS_STOPPED


def is_healed(said: str) -> bool:
    assert "Healed: " in said.splitlines()[-1], said
    assert said.count("which is the exact sum of the rides") == 2
    return all(f"All {claim} up to ride " in said for claim in HEALED)


def test_all_connections_are_cut_and_everybody_connects_again(fleet: Fleet) -> None:
    before = sessions(fleet)
    assert before
    status, said = told(fleet, "demo.breaking", "cut-connections")
    assert status == 0, said
    assert is_healed(said)
    assert not before & sessions(fleet)
    found = re.search(r"those were (\d+) sessions? of Postgres and (\d+) conn", said, re.I)
    assert found
    # Not all: some may be about to connect again, after an injected crash.
    assert int(found[1]) > 2
    assert int(found[2]) > 2


def sessions(fleet: Fleet) -> set[int]:
    """The pids of the services' sessions with Postgres."""
    with psycopg.connect(fleet.database) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name ~ "
            "'^(streamer|rollup|consumer consumer[01]|receipts receipts[01])'"
        ).fetchall()
    return {pid for (pid,) in rows}


def test_a_receiver_fails_for_a_while_and_receipts_come_all_the_same(fleet: Fleet) -> None:
    before = len(fleet.output.read_text())
    status, said = told(fleet, "demo.breaking", "fail-receiver")
    assert status == 0, said
    assert is_healed(said)
    assert "The receiver works again." in said
    for line in (
        r"\| WARNING refusing all receipts for 5 s",
        r"receipts[01]\.1 *\| INFO .*receipts: .*to be sent again later",
    ):
        happened = partial(re.search, line)
        eventually(lambda: happened(fleet.output.read_text()[before:]), line)  # noqa: B023


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_frozen_consumer_goes_on_whatever_becomes_of_who_froze_it(
    fleet: Fleet, number: signal.Signals
) -> None:
    victim = consumer1(fleet)
    breaking = person(fleet, "demo.breaking", "freeze", "--seconds", "60")
    eventually(lambda: is_frozen(victim), "a frozen consumer")
    breaking.send_signal(number)
    breaking.communicate(timeout=PATIENCE)
    eventually(lambda: not is_frozen(victim), "a consumer that goes on")
    assert breaking.returncode != 0


EXACT = """
    SELECT total_distance = (SELECT sum(distance) FROM rides WHERE id <= position)
    FROM checkpoints JOIN consumer_states USING (kind, name) WHERE name = 'consumer1'
"""
TAKE_IT_BACK = """
    UPDATE consumer_states SET total_distance = total_distance - 0.001 WHERE name = 'consumer1'
"""


def test_a_millimetre_is_added_and_keeps_the_total_from_being_frozen_until_it_is_right(
    fleet: Fleet,
) -> None:
    """That a run finds and repairs it is in `tests/analytics`."""
    status, said = told(fleet, "demo.breaking", "change-total")
    assert status == 0
    assert "+0.001 m off" in said
    assert "make reconcile" in said
    with psycopg.connect(fleet.database, autocommit=True) as connection:
        assert connection.execute(EXACT).fetchone() == (False,)
        _, said = told(fleet, "demo.breaking", "freeze")
        assert "consumer1 is already wrong: `make reconcile`" in said
        connection.execute(TAKE_IT_BACK)
        eventually(lambda: connection.execute(EXACT).fetchone() == (True,), "an exact total")
