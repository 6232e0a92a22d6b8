"""Chaos itself: a short run of it, what its checker finds, and what its faults do."""

import random
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import psutil
import psycopg
import pytest

from chaos.checker import check
from chaos.evidence import Books, Evidence, Standing
from chaos.faults import FAULTS
from chaos.ledger import Answer, Ask
from chaos.nemesis import plan
from chaos.proxy import Proxy
from chaos.service import Exit
from rocket_rides.log import Record
from rocket_rides.settings import EMBEDDED_PORT, PROJECT
from tests.world import World, eventually

SHORT_RUN = ["--seed", "7", "--seconds", "20"]
LIMIT = 240  # seconds; only a hanging run takes so long


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "chaos", *arguments],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # As a shell starts what is to run in the background: without a Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )


def test_a_short_run_loses_nothing() -> None:
    run = start(*SHORT_RUN)
    said, _ = run.communicate(timeout=LIMIT)
    assert run.returncode == 0, said
    assert said.startswith("seed 7\n")
    rows = (line.strip("| ").split(" | ") for line in said.splitlines() if " | " in line)
    figures = {name.strip(): figure for name, figure in rows}
    assert figures["exact totals"] == "3 of 3"
    assert figures["lost"] == figures["double"] == "0"


def test_ctrl_c_leaves_nothing_behind() -> None:
    run = start("--seconds", "600", "--faults", "freeze,kill")
    chaos = psutil.Process(run.pid)
    folder = eventually(lambda: folder_of(chaos), "a fleet", LIMIT)
    assert folder
    eventually(lambda: "kill of" in journal(folder), "faults", LIMIT)
    started = chaos.children(recursive=True)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=LIMIT)
    assert run.returncode == 130
    assert psutil.wait_procs(started, timeout=10)[1] == []  # init reaps the API's workers
    assert not folder.exists()


def folder_of(chaos: psutil.Process) -> Path | None:
    """The fleet's folder, as one of its services knows it."""
    for process in chaos.children():
        with suppress(psutil.Error, KeyError):
            folder = Path(process.environ()["DATA_DIR"]).parent
            if folder.name.startswith("chaos-"):  # not ours, before the process becomes a service
                return folder
    return None


def journal(folder: Path) -> str:
    file = folder / "nemesis.log"
    return file.read_text() if file.exists() else ""


def test_the_seed_decides_the_plan() -> None:
    kinds = list(FAULTS)
    first, again, other = ([(p.at, p.kind) for p in plan(n, 60, kinds)] for n in (7, 7, 8))
    assert first == again != other
    assert {kind for _, kind in first} == set(kinds)


def test_a_connection_is_cut_in_the_middle(world: World) -> None:
    with proxied(world) as proxy, connect(world, proxy) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        proxy.cut(1, random.Random(0))
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_an_answer_is_lost_and_the_work_is_done(world: World) -> None:
    with proxied(world) as proxy, connect(world, proxy) as connection:
        proxy.lose_answers(True)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("INSERT INTO rides (distance) VALUES (5)")
    assert world.value("SELECT count(*) FROM rides") == 1


def test_a_server_that_is_down_is_down_behind_the_proxy_too(world: World, tmp_path: Path) -> None:
    proxy = Proxy(tmp_path / "nobody")
    with closing(Started(proxy)), pytest.raises(psycopg.OperationalError):
        connect(world, proxy)


class Started:
    """A proxy that has started, until it is closed."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        proxy.start()

    def __enter__(self) -> Proxy:
        return self.proxy

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.proxy.stop()


def proxied(world: World) -> Started:
    return Started(Proxy(world.postgres.sockets / f".s.PGSQL.{EMBEDDED_PORT}"))


def connect(world: World, proxy: Proxy) -> psycopg.Connection:
    database = world.postgres_url.rpartition("/")[2].partition("?")[0]
    return psycopg.connect(
        f"postgresql://postgres@127.0.0.1:{proxy.port}/{database}", autocommit=True
    )


def sound() -> Evidence:
    """Two rides, one of them sent twice; a third request was never completed."""
    one, two = Decimal("1.009"), Decimal("2.018")
    return Evidence(
        asks=[
            Ask(one, "a", whole=True, answers=[Answer(1, one)]),
            Ask(two, "b", whole=True, answers=[Answer(3, two)]),
            Ask(Decimal("3.027"), "c"),
        ],
        books=Books({1: one, 3: two}, {"a": 1, "b": 3}, [], 3, {"c0": Standing(3, one + two)}, []),
        records=[Record(1, 0, one), Record(3, 1, two), Record(3, 1, two)],
        exits=[Exit("streamer0", -9, signal.SIGKILL, 10), Exit("api", 0, signal.SIGTERM, 10)],
        names=("c0",),
    )


def lose_a_ride(evidence: Evidence) -> None:
    del evidence.books.rides[3]


def change_a_ride(evidence: Evidence) -> None:
    evidence.books.rides[3] = Decimal("2.017")


def take_one_twice(evidence: Evidence) -> None:
    evidence.books.rides[4] = Decimal("2.018")


def take_half_a_request(evidence: Evidence) -> None:
    evidence.books.rides[4] = Decimal("3.027")


def take_what_nobody_asked_for(evidence: Evidence) -> None:
    evidence.books.rides[4] = Decimal("0.5")


def forget_the_key(evidence: Evidence) -> None:
    del evidence.books.keys["b"]


def never_answer(evidence: Evidence) -> None:
    evidence.asks[1].answers.clear()


def miscount(evidence: Evidence) -> None:
    evidence.books.consumers["c0"] = Standing(3, Decimal("3.026"))


def fall_behind(evidence: Evidence) -> None:
    evidence.books.consumers["c0"] = Standing(1, Decimal("3.027"))


def lose_a_consumer(evidence: Evidence) -> None:
    evidence.books.consumers.clear()


def turn_the_log_round(evidence: Evidence) -> None:
    evidence.records.reverse()
    evidence.records.pop(0)


def see_nothing(evidence: Evidence) -> None:
    evidence.records.clear()


def break_the_chain(evidence: Evidence) -> None:
    evidence.records[1] = Record(3, 0, Decimal("2.018"))


def forge_an_entry(evidence: Evidence) -> None:
    evidence.records.append(Record(4, 3, Decimal("5.000")))


def leave_one_staged(evidence: Evidence) -> None:
    evidence.books.staged.append(3)


def set_one_aside(evidence: Evidence) -> None:
    evidence.books.dead_letters.append("c0 set aside 5-0: not JSON")


def die_by_itself(evidence: Evidence) -> None:
    evidence.exits.append(Exit("consumer0", 1, None, 10))


def fail_on_sigterm(evidence: Evidence) -> None:
    evidence.exits.append(Exit("consumer0", 1, signal.SIGTERM, 10))


def say_something_unexpected(evidence: Evidence) -> None:
    evidence.errors.append("consumer0 said: Traceback")


@pytest.mark.parametrize(
    ("breakage", "expected"),
    [
        (lose_a_ride, "is lost"),
        (change_a_ride, "is lost"),
        (take_one_twice, "there are [3, 4]"),
        (take_half_a_request, "its request was never completed"),
        (take_what_nobody_asked_for, "ride 4 of 0.5 m was never asked for"),
        (forget_the_key, "under key b, which names None"),
        (never_answer, "was never answered"),
        (miscount, "c0's total is 3.026 m, not 3.027 m (-0.001 m)"),
        (fall_behind, "c0's last ride is 1, not 3"),
        (lose_a_consumer, "there is no c0"),
        (turn_the_log_round, "told of ride 1 after ride 3"),
        (see_nothing, "the onlooker has seen no entry"),
        (break_the_chain, "prev of ride 3 is 0, not 1"),
        (forge_an_entry, "ride 4 of 5.000 m, which is not there"),
        (leave_one_staged, "1 records are left staged"),
        (set_one_aside, "c0 set aside 5-0"),
        (die_by_itself, "consumer0 ended with status 1 after 10 s; nobody had sent it"),
        (fail_on_sigterm, "it was sent SIGTERM"),
        (say_something_unexpected, "consumer0 said: Traceback"),
    ],
)
def test_the_checker_finds(breakage: Callable[[Evidence], None], expected: str) -> None:
    evidence = sound()
    assert check(evidence) == []
    breakage(evidence)
    assert expected in "\n".join(check(evidence))


def test_many_findings_of_one_kind_are_not_all_spelled_out() -> None:
    evidence = replace(sound(), errors=[f"error {n}" for n in range(100)])
    assert check(evidence)[-1] == "... and 95 more of these"


@pytest.mark.parametrize("option", ["--faults=nonsense", "--seconds=0", "--rate=-1", "--rate=nan"])
def test_an_option_that_makes_no_sense_is_refused(option: str) -> None:
    run = start(option)
    said, _ = run.communicate(timeout=LIMIT)
    assert run.returncode == 2
    assert option.partition("=")[0] in said
