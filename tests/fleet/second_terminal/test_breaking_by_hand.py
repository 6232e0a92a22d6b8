"""`make break` beside a running fleet: what breaks, what heals, and what a person is told."""

import re
import signal

import psutil
import pytest

from tests.support.honcho import Fleet
from tests.support.terminal import person, told
from tests.support.world import PATIENCE, eventually


@pytest.mark.parametrize(
    ("way", "became"),
    [
        ("freeze", r"Meanwhile \d+ rides? w"),
        ("stop-redis", r"Redis serves again after \d\.\d s"),
        ("wipe-log", r"The log is gone"),
    ],
)
def test_a_fleet_that_was_broken_by_hand_is_seen_to_heal(
    fleet: Fleet, way: str, became: str
) -> None:
    before = len(fleet.output.read_text())
    breaking = person(fleet, "chaos.by_hand", way, "--seconds", "2")
    if way != "stop-redis":
        post_while_frozen(fleet, consumer1(fleet))
    said, _ = breaking.communicate(timeout=PATIENCE * 2)
    assert breaking.returncode == 0, said
    assert re.search(became, said)
    assert "Healed: " in said
    assert said.count("which is the exact sum of the rides") == 2
    if way == "wipe-log":
        healed = "consumer1 healed a gap in the log"
        eventually(lambda: healed in fleet.output.read_text()[before:], healed)


@pytest.mark.parametrize(("way", "rides"), [("freeze", 0), ("wipe-log", 0), ("wipe-log", 1)])
def test_nothing_is_said_to_heal_where_nothing_was_broken(
    fleet: Fleet, way: str, rides: int
) -> None:
    simulator, victim = running(fleet, "simulator"), consumer1(fleet)
    simulator.suspend()
    try:
        eventually(lambda: len(set(fleet.standings().values())) == 1, "idle consumers")
        breaking = person(fleet, "chaos.by_hand", way, "--seconds", "1")
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


def test_two_processes_of_one_name_are_one_consumer(fleet: Fleet) -> None:
    first = consumer1(fleet)
    with person(fleet, "consumers", "consumer1", HONCHO_PROCESS_NAME="consumer1.2") as second:
        try:
            assert second.stdout
            assert any("stands at" in line for line in second.stdout)
            breaking = person(fleet, "chaos.by_hand", "freeze", "--seconds", "1")
            post_while_frozen(fleet, first)
            said, _ = breaking.communicate(timeout=PATIENCE * 2)
        finally:
            second.kill()
    assert breaking.returncode == 0, said
    assert all(str(process.pid) in said.splitlines()[0] for process in (first, second))
    assert "Healed: " in said


def running(fleet: Fleet, *module: str) -> psutil.Process:
    [process] = [p for p, command in fleet.commands() if command[1:] == ["-m", *module]]
    return process


def consumer1(fleet: Fleet) -> psutil.Process:
    return running(fleet, "consumers", "consumer1")


def post(fleet: Fleet) -> None:
    fleet.client.post("/rides", data={"distance": "1"}).raise_for_status()


def post_while_frozen(fleet: Fleet, victim: psutil.Process) -> None:
    eventually(lambda: victim.status() == psutil.STATUS_STOPPED, "a frozen consumer")
    while victim.status() == psutil.STATUS_STOPPED:
        post(fleet)


def test_ctrl_z_does_not_leave_a_consumer_frozen(fleet: Fleet) -> None:
    victim = consumer1(fleet)
    breaking = person(fleet, "chaos.by_hand", "freeze", "--seconds", "1")
    eventually(lambda: victim.status() == psutil.STATUS_STOPPED, "a frozen consumer")
    breaking.send_signal(signal.SIGTSTP)
    try:
        eventually(lambda: victim.status() != psutil.STATUS_STOPPED, "a consumer that goes on")
    finally:
        breaking.send_signal(signal.SIGCONT)
        breaking.communicate(timeout=PATIENCE * 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_frozen_consumer_goes_on_whatever_becomes_of_who_froze_it(
    fleet: Fleet, number: signal.Signals
) -> None:
    victim = consumer1(fleet)
    breaking = person(fleet, "chaos.by_hand", "freeze")
    eventually(lambda: victim.status() == psutil.STATUS_STOPPED, "a frozen consumer")
    breaking.send_signal(number)
    breaking.communicate(timeout=PATIENCE)
    eventually(lambda: victim.status() != psutil.STATUS_STOPPED, "a consumer that goes on")
    assert breaking.returncode != 0


def test_a_millimetre_is_added_and_said_to_be_a_reconciliations_to_find(fleet: Fleet) -> None:
    status, said = told(fleet, "chaos.by_hand", "change-total")
    assert status == 0
    assert "+0.001 m off" in said
    assert "make reconcile" in said
    _, said = told(fleet, "chaos.by_hand", "freeze")
    assert "consumer1 is already wrong: `make reconcile`" in said
    mend = "UPDATE consumer_states SET total_distance = total_distance - 0.001"
    assert told(fleet, "embedded.prompt", "psql", "-c", f"{mend} WHERE name = 'consumer1'")[0] == 0


def test_a_fleet_with_other_settings_is_not_this_one(fleet: Fleet) -> None:
    status, said = told(fleet, "chaos.by_hand", "freeze", STREAM_NAME="another")
    assert status == 1
    assert said.startswith("no fleet runs on")
