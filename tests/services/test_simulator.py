"""The simulator, run as a process against an API that answers what the test says."""

import itertools
import signal
import uuid
from collections import Counter

import pytest

from lab.ports import free_ports
from tests.support.simulator import DROP, Api, Simulator, run
from tests.support.world import eventually


def test_it_posts_exactly_as_many_rides_as_asked_each_with_a_key_of_its_own() -> None:
    with Api() as api:
        status, said = run(api.port, "--rides", "40", "--rate", "0", "--concurrency", "7")
    assert (status, said) == (0, "INFO    40 rides posted, 0 retried\n")
    assert len(set(api.keys)) == len(api.posts) == 40
    assert all(uuid.UUID(key).version == 4 for key in api.keys)
    assert all(5 <= metres <= 1000 for _, metres in api.posts)
    assert len({metres for _, metres in api.posts}) > 30


def test_a_ride_is_repeated_with_its_key_until_it_is_answered() -> None:
    with Api(statuses=[503, DROP, 500, 201, 502]) as api:
        status, said = run(api.port, "--rides", "3", "--rate", "0")
    assert (status, said) == (0, "INFO    3 rides posted, 4 retried\n")
    assert sorted(Counter(api.posts).values()) == [1, 2, 4]
    assert len(set(api.keys)) == 3


def test_a_refused_ride_is_reported_counted_and_not_repeated() -> None:
    with Api(statuses=[201, 422]) as api:
        status, said = run(api.port, "--rides", "3", "--rate", "0")
    assert len(api.posts) == len(set(api.keys)) == 3
    assert said.splitlines() == [
        f"ERROR   a ride of {api.posts[1][1]} m got 422: this is 422",
        "INFO    2 rides posted, 0 retried, 1 refused",
    ]
    assert status == 1


def test_it_says_once_that_it_waits_for_an_api_that_comes_up_later() -> None:
    port = free_ports()
    process = Simulator(port, "--rides", "2", "--rate", "0")
    assert eventually(process.stdout.readline).startswith("INFO    waiting for the API at ")
    with Api(port) as api:
        said = process.ended(within=15)
        assert len(api.posts) == 2
    assert (process.returncode, said) == (0, "INFO    2 rides posted, 0 retried\n")


@pytest.mark.parametrize("answers", [201, 503])
def test_a_signal_ends_it_within_a_second_with_one_line(answers: int) -> None:
    """Also while every ride fails."""
    with Api(statuses=itertools.repeat(answers)) as api:
        process = Simulator(api.port, "--rate", "50")
        eventually(lambda: len(api.posts) >= 3)
        process.terminate()
        said = process.ended(within=1)
    assert process.returncode == 0
    assert " rides posted, " in said
    assert said.count("\n") == 1


def test_a_signal_ends_it_while_it_waits_for_the_api() -> None:
    process = Simulator(free_ports())
    eventually(process.stdout.readline)
    process.send_signal(signal.SIGINT)
    said = process.ended(within=1)
    assert (process.returncode, said) == (0, "INFO    0 rides posted, 0 retried\n")
