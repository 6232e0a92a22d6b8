"""The workers share the reading and the work: they die, hang and wake up, and lose nothing."""

import pytest

from tests.support.clusters import each_stream_server
from tests.support.receipts import SOON, Staff, crash, sent
from tests.support.receiver import HANG, Answer


@pytest.mark.proves("receipts")
@each_stream_server
def test_what_a_dead_worker_had_read_is_claimed_and_by_its_own_name_at_once(staff: Staff) -> None:
    for name in ("one", "two"):
        sent(staff.world, 10)
        doomed = staff.worker(name)
        with crash("after entries were read"):
            doomed.until(lambda: False)
        doomed.die()
    other = staff.worker("other")
    for _ in range(3):  # what another has just read is left to it
        other.read()
    assert staff.pending == 20
    staff.worker("one").until(lambda: staff.outcomes() == staff.pending == 10)
    other = staff.worker("other", claim_after=0.2)
    other.until(lambda: staff.outcomes() == 20 and staff.pending == 0)
    assert max(staff.receiver.rides.values()) == 1


def test_a_receipt_that_kills_its_worker_each_time_is_dead_and_the_rest_goes_on(
    staff: Staff, impatient: None
) -> None:
    """Whatever else was in flight with it is quarantined too, and proves innocent."""
    rides = sent(staff.world, 10)
    killer = rides[5]
    staff.receiver.behaviour = lambda r: HANG if r.ride_id == killer else Answer(delay=0.05)
    limits = {**SOON, "receipt_attempts": 3}
    for number in range(1, 4):
        doomed = staff.worker(f"doomed{number}", **limits)
        doomed.until(lambda: len(staff.receiver.of(killer)) == number)  # noqa: B023
        doomed.die()
        staff.leases_run_out()
    last = staff.worker("last", **limits)
    last.until(lambda: staff.outcomes() == 9 and staff.outcomes("dead") == 1)
    outcome, attempts, reason = staff.receipt(killer)
    assert (outcome, attempts) == ("dead", 3)
    assert "3 attempts" in str(reason)
    assert len(staff.receiver.of(killer)) == 3
