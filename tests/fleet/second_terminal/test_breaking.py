"""Breaking a running fleet: what breaks, what heals, and what a person is told.

By `make break`, and as the live page does it: in a thread of another process.
"""

import re
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psutil
import psycopg
import pytest

from demo import breaking
from demo.breaking import Kind, healing, target
from demo.breaking.healing import LOOK_EVERY
from demo.breaking.running_fleet import running_fleet
from demo.breaking.ways import WAYS
from rocket_rides.errors import Unavailable
from rocket_rides.settings import Settings
from tests.support.honcho import Fleet
from tests.support.jobs import SPARK_PATIENCE
from tests.support.terminal import person, told
from tests.support.world import PATIENCE, eventually

BreakIt = Callable[..., list[str]]
ATTEMPTS = 10  # most of which may find a consumer that starts again after an injected crash
LONGEST = 2 * healing.PATIENCE  # seconds: it waits for receipts, which may have to be tried again
HEALED = ("totals are exact", "minutes are complete", "receipts are delivered or dead letters")


@pytest.fixture
def break_it(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> BreakIt:
    """Break the fleet from a thread of this process; returns what was said."""
    for name, value in ({"DATABASE_URL": "", "REDIS_URL": ""} | fleet.settings).items():
        monkeypatch.setenv(name, value)

    def run(way: str, seconds: float = 5) -> list[str]:
        said: list[str] = []

        def say(line: str, _kind: Kind = Kind.NEWS) -> None:
            said.append(line)

        with ThreadPoolExecutor(1) as threads:
            threads.submit(breaking.run, way, Settings(), say, seconds).result()
        return said

    return run


@pytest.mark.parametrize(
    ("way", "became"),
    [
        ("freeze", r"Meanwhile the API took \d+ ride"),
        ("stop-redis", r"Redis serves again after \d\.\d s"),
        ("wipe-log", r"The log is gone"),
    ],
)
def test_a_fleet_that_was_broken_by_hand_is_seen_to_heal(
    fleet: Fleet, way: str, became: str
) -> None:
    before = len(fleet.output.read_text())
    breaking = person(fleet, "demo.breaking", way, "--seconds", "2")
    if way in ("freeze", "wipe-log"):
        post_while_frozen(fleet, consumer1(fleet))
    said, _ = breaking.communicate(timeout=LONGEST)
    assert breaking.returncode == 0, said
    assert re.search(became, said)
    assert "Healed: " in said
    assert said.count("which is the exact sum of the rides") == 2
    assert all(f"All {claim} up to ride " in said for claim in HEALED)
    if way == "wipe-log":
        healed = "consumer1 healed a gap in the log"
        eventually(lambda: healed in fleet.output.read_text()[before:], healed)


def is_healed(said: list[str]) -> bool:
    assert all(line.isprintable() for line in said)
    assert said[-1].startswith("Healed: "), said
    return all(any(line.startswith(f"All {claim} up to ride") for line in said) for claim in HEALED)


def test_all_connections_are_cut_and_everybody_connects_again(
    fleet: Fleet, break_it: BreakIt
) -> None:
    for _ in range(ATTEMPTS):
        before = sessions(fleet)
        assert before
        said = break_it("cut-connections")
        assert is_healed(said)
        assert not before & sessions(fleet)
        found = re.search(
            r"those were (\d+) sessions of Postgres and (\d+) conn", "\n".join(said), re.I
        )
        assert found
        if int(found[1]) >= 6 and int(found[2]) >= 6:
            return
    pytest.fail("\n".join(said))


def test_a_receiver_fails_for_a_while_and_receipts_come_all_the_same(
    fleet: Fleet, break_it: BreakIt
) -> None:
    before = len(fleet.output.read_text())
    said = break_it("fail-receiver")
    assert is_healed(said)
    assert "The receiver works again." in said
    happened = fleet.output.read_text()[before:]
    assert "| WARNING refusing all receipts for 5 s" in happened
    assert re.search(r"receipts[01]\.1 *\| INFO .*receipts? to be sent again later", happened)


def test_one_way_at_a_time_whoever_asks_and_however_the_other_ends(
    fleet: Fleet, break_it: BreakIt
) -> None:
    victim = consumer1(fleet)
    other = person(fleet, "demo.breaking", "freeze", "--seconds", "60")
    eventually(lambda: victim.status() == psutil.STATUS_STOPPED, "a frozen consumer")
    for way in WAYS:
        with pytest.raises(Unavailable, match="the fleet is already being broken in another way"):
            break_it(way)
    other.kill()
    other.communicate(timeout=PATIENCE)
    assert break_it("cut-connections")[-1].startswith("Healed: ")


@pytest.mark.parametrize(("way", "rides"), [("freeze", 0), ("wipe-log", 0), ("wipe-log", 1)])
def test_nothing_is_said_to_heal_where_nothing_was_broken(
    fleet: Fleet, way: str, rides: int
) -> None:
    simulator, victim = running(fleet, "demo.simulator"), consumer1(fleet)
    simulator.suspend()
    try:
        eventually(lambda: len(set(fleet.standings().values())) == 1, "idle consumers")
        breaking = person(fleet, "demo.breaking", way, "--seconds", "1")
        eventually(lambda: victim.status() == psutil.STATUS_STOPPED, "a frozen consumer")
        for _ in range(rides):  # it may lie in the consumer's socket already
            post(fleet)
        said, _ = breaking.communicate(timeout=PATIENCE)
    finally:
        simulator.resume()
    assert breaking.returncode == 1, said
    assert "nothing was broken, because consumer1 missed too few rides" in said
    assert "Healed" not in said
    assert "The log is gone" not in said


def test_without_a_ride_it_is_said_that_nothing_had_to_heal(
    fleet: Fleet, break_it: BreakIt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, "NEXT_RIDE", 0.5)
    simulator = running(fleet, "demo.simulator")
    simulator.suspend()
    try:
        eventually(lambda: len(set(fleet.standings().values())) == 1, "idle consumers")
        said = break_it("stop-redis")
    finally:
        simulator.resume()
    assert any(line.startswith("Redis serves again after ") for line in said)
    assert any(line.startswith("No ride was taken since") for line in said)
    assert not any("Healed" in line for line in said)


def test_two_processes_of_one_name_are_one_consumer(fleet: Fleet) -> None:
    first = consumer1(fleet)
    with person(fleet, "consumers", "consumer1", HONCHO_PROCESS_NAME="consumer1.2") as second:
        try:
            assert second.stdout
            assert any("stands at" in line for line in second.stdout)
            breaking = person(fleet, "demo.breaking", "freeze", "--seconds", "1")
            post_while_frozen(fleet, first)
            said, _ = breaking.communicate(timeout=LONGEST)
        finally:
            second.kill()
    assert breaking.returncode == 0, said
    assert all(str(process.pid) in said.splitlines()[0] for process in (first, second))
    assert "Healed: " in said


def sessions(fleet: Fleet) -> set[int]:
    """The pids of the services' sessions with Postgres."""
    with psycopg.connect(fleet.database) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name ~ "
            "'^(streamer|rollup|consumer consumer[01]|receipts receipts[01])'"
        ).fetchall()
    return {pid for (pid,) in rows}


def running(fleet: Fleet, *module: str) -> psutil.Process:
    [process] = [p for p, command in fleet.commands() if command[1:] == ["-m", *module]]
    return process


def consumer1(fleet: Fleet) -> psutil.Process:
    return running(fleet, "consumers", "consumer1")


def post(fleet: Fleet) -> None:
    fleet.client.post("/rides", data={"distance": "1"}).raise_for_status()


def post_while_frozen(fleet: Fleet, victim: psutil.Process) -> None:
    """A ride now and then, so that each is seen to be sent: not in one batch with the one before.

    Few, since each needs a receipt, which the simulator may refuse for seconds.
    """
    eventually(lambda: victim.status() == psutil.STATUS_STOPPED, "a frozen consumer")
    while victim.status() == psutil.STATUS_STOPPED:
        post(fleet)
        time.sleep(2 * LOOK_EVERY)


def test_ctrl_z_does_not_leave_a_consumer_frozen(fleet: Fleet) -> None:
    victim = consumer1(fleet)
    breaking = person(fleet, "demo.breaking", "freeze", "--seconds", "1")
    eventually(lambda: victim.status() == psutil.STATUS_STOPPED, "a frozen consumer")
    breaking.send_signal(signal.SIGTSTP)
    try:
        eventually(lambda: victim.status() != psutil.STATUS_STOPPED, "a consumer that goes on")
    finally:
        breaking.send_signal(signal.SIGCONT)
        breaking.communicate(timeout=LONGEST)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_frozen_consumer_goes_on_whatever_becomes_of_who_froze_it(
    fleet: Fleet, number: signal.Signals
) -> None:
    victim = consumer1(fleet)
    breaking = person(fleet, "demo.breaking", "freeze")
    eventually(lambda: victim.status() == psutil.STATUS_STOPPED, "a frozen consumer")
    breaking.send_signal(number)
    breaking.communicate(timeout=PATIENCE)
    eventually(lambda: victim.status() != psutil.STATUS_STOPPED, "a consumer that goes on")
    assert breaking.returncode != 0


def test_a_millimetre_is_added_and_said_to_be_a_reconciliations_to_find(fleet: Fleet) -> None:
    status, said = told(fleet, "demo.breaking", "change-total")
    assert status == 0
    assert "+0.001 m off" in said
    assert "make reconcile" in said
    _, said = told(fleet, "demo.breaking", "freeze")
    assert "consumer1 is already wrong: `make reconcile`" in said
    mend = "UPDATE consumer_states SET total_distance = total_distance - 0.001"
    asked = ("psql", "-c", f"{mend} WHERE name = 'consumer1'")
    assert told(fleet, "demo.embedded.prompt", *asked)[0] == 0


def test_a_total_is_changed_found_by_a_reconciliation_and_right_again(
    java: None, fleet: Fleet, break_it: BreakIt
) -> None:
    """A whole run, as a process of its own, and beside a fleet that goes on."""
    break_it("change-total")
    reconciliation = person(fleet, "analytics.reconcile")
    said, _ = reconciliation.communicate(timeout=SPARK_PATIENCE)
    assert reconciliation.returncode == 1, said
    assert re.search(r"consumer1 .* \+0\.001  wrong: reset requested", said)
    assert said.splitlines()[-1].endswith(" was wrong and will be reset.")
    with psycopg.connect(fleet.database, autocommit=True) as connection:
        totals = healing.Healing(connection, running_fleet(Settings()), lambda *_: None).totals
        eventually(lambda: all(each.is_exact for each in totals()), "exact totals")
    assert break_it("cut-connections")[-1].startswith("Healed: ")


def test_a_fleet_with_other_settings_is_not_this_one(fleet: Fleet) -> None:
    status, said = told(fleet, "demo.breaking", "freeze", STREAM_NAME="another")
    assert status == 1
    assert said.startswith("no fleet runs on")
