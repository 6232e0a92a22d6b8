"""`python -m watch.status`: what flows, on a terminal; a probe by its exit status."""

import json
import socket
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest

from lab.ports import free_ports
from rocket_rides.fleet import no_fleet_on
from tests.support.clock import Clock
from tests.support.facts import A_TOTAL, WELL, absent, facts
from tests.support.hosts import url_of
from tests.support.looks import at_work, probed
from tests.support.world import World, catch_up
from watch import status as command
from watch.facts import Facts, Server


def run(world: World, *options: str, **environment: str) -> tuple[int, str]:
    """The exit status, and what was said."""
    code, said = probed(world, *options, **environment)
    assert "Traceback" not in said
    return code, said


def test_it_says_that_all_is_well_or_what_is_not(world: World) -> None:
    consumer = world.consumer()
    with at_work(world, "api"):
        code, said = run(world)
    assert code == 1  # nobody reads
    assert "NOT WELL: the total consumer0 is not at work in any process" in said
    with at_work(world, "reader total consumer0"):
        world.send("539.837")
        catch_up(consumer)
        code, said = run(world, "--json")
    told = json.loads(said)
    found = [(problem["kind"], problem["what"][:16]) for problem in told["problems"]]
    assert found == [
        ("dead", "no streamer lead"), ("dead", "no rollup leads,"), ("dead", "nobody delivers ")
    ]  # fmt: skip
    [total] = [each for each in told["database"]["readers"] if each["kind"] == "total"]
    assert total["total"] == 539.837
    assert (code, told["status"]) == (1, 1)


def test_what_can_not_be_told_is_told_apart_from_what_is_wrong(world: World) -> None:
    nobody = f"127.0.0.1:{free_ports()}"
    code, said = run(world, REDIS_URL=f"redis://{nobody}")
    assert code == 2
    assert "NOT WELL: Redis can't be used: " in said
    assert "the newest is 0" in said
    world.connection.execute("DELETE FROM schema_versions WHERE component = 'rocket_rides'")
    code, said = run(world, "--json")
    assert (code, json.loads(said)["status"]) == (2, 2)
    assert "which this code can't upgrade: CHANGELOG.md says how" in said


def test_a_probe_of_an_idle_fleet_succeeds_though_an_earlier_host_hangs(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hangs, at_work(world, "streamer (starting)"):
        url = url_of(world, f"127.0.0.1:{hangs.getsockname()[1]}")
        code, said = run(world, DATABASE_URL=url)
    assert (code, said.splitlines()[-2]) == (0, "All is well.")


def test_where_no_fleet_runs_one_line_says_so(world: World, tmp_path: Path) -> None:
    embedded = {"DATABASE_URL": "", "REDIS_URL": "", "DATA_DIR": str(tmp_path / "data")}
    sentence = f"{no_fleet_on(tmp_path / 'data')}\n"
    assert run(world, **embedded) == (3, sentence)
    code, said = run(world, "--json", **embedded)
    assert (code, json.loads(said)["status"]) == (3, 3)
    nobody = "no fleet runs on these servers: none of its processes has a session with Postgres\n"
    assert run(world) == (3, nobody)
    assert run(world, REDIS_URL=f"redis://127.0.0.1:{free_ports()}")[0] == 2


class Flapping:
    """Finds somebody else missing at each look; or a server that was busy at the first one."""

    def __init__(self, *found: Facts) -> None:
        self._found, self.looks = cycle(found), 0

    def gather(self) -> Facts:
        self.looks += 1
        return next(self._found)


def test_a_server_that_is_away_is_asked_again_and_one_that_is_busy_for_some_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(command, "time", clock)
    away = replace(WELL, redis=Server(False, "Connection refused"), log=None)
    busy = replace(WELL, redis=Server(False, "it does not answer"), log=None)
    for found, looks in (((away, WELL), 2), ((busy, busy, busy, WELL), 4)):
        gatherer = Flapping(*found)
        assert command.look(gatherer) == WELL  # type: ignore[arg-type]
        assert gatherer.looks == looks
    clock.now, gatherer = 0, Flapping(away)
    seen = command.look(gatherer)  # type: ignore[arg-type]
    assert (command.status(seen), gatherer.looks) == (2, 2)
    clock.now, gatherer = 0, Flapping(busy)
    seen = command.look(gatherer)  # type: ignore[arg-type]
    assert (command.status(seen), round(clock.now)) == (2, 4)


def test_a_probe_ends_though_always_somebody_else_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(command, "time", clock)
    one, other = (
        absent(facts(readers=(replace(A_TOTAL, name=name, processes=0),)), 0) for name in "ab"
    )
    gatherer = Flapping(one, other)
    seen = command.look(gatherer)  # type: ignore[arg-type]
    assert command.status(seen) == 0
    assert gatherer.looks > 2
    assert command.SETTLED <= clock.now <= command.SETTLED + 2 * command.SOON
