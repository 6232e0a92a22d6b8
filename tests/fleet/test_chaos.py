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
from chaos.evidence import Books, Evidence, Standing, Told
from chaos.faults import FAULTS
from chaos.ledger import Answer, Ask
from chaos.losses import undone
from chaos.nemesis import Struck, plan
from chaos.observer import Look, Watch
from chaos.proxy import Proxy
from chaos.recovery import recoveries
from chaos.restore import Restore
from chaos.service import Exit
from rocket_rides.log import Record
from rocket_rides.settings import EMBEDDED_PORT, PROJECT
from tests.world import World, eventually

SHORT_RUNS = [
    ["--seed", "7", "--seconds", "20"],
    ["--seed", "7", "--seconds", "12", "--faults", "stranger,postgres-restore"],
]
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


@pytest.mark.parametrize("options", SHORT_RUNS, ids=["all faults", "other histories"])
def test_a_short_run_loses_nothing(options: list[str]) -> None:
    run = start(*options)
    said, _ = run.communicate(timeout=LIMIT)
    assert run.returncode == 0, said
    assert said.startswith("seed 7\n")
    rows = (line.strip("| ").split(" | ") for line in said.splitlines() if " | " in line)
    figures = {name.strip(): figure for name, figure in rows}
    assert figures["exact totals"] == "3 of 3"
    assert figures["lost"] == figures["double"] == "0"
    for kind in options[-1].split(",") if "--faults" in options else ():
        assert kind in figures["faults"]


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


NOBODYS = "an entry that nobody can have written"
ONE, TWO, GONE = Decimal("1.009"), Decimal("2.018"), Decimal("4.036")
THEIRS = Record(2, 1, Decimal("7.000"), b"theirs")
MEANWHILE, LATER = 105.0, 120.0  # after the backup, and after the restore


def answered(number: int, distance: Decimal, key: str, at: float) -> Ask:
    answer = Answer(number, distance, at, at + 0.1)
    return Ask(distance, key, whole=True, asked_at=at, answers=[answer])


def sound() -> Evidence:
    """Three rides are answered, and a third request was never completed.

    One ride is sent twice, and once by a leader that commits nothing. Another is answered after a
    backup, and lost by the restore. A stranger writes to the log.
    """
    return Evidence(
        asks=[
            answered(1, ONE, "a", 50),
            answered(3, TWO, "b", LATER),
            Ask(Decimal("3.027"), "c"),
            answered(3, GONE, "d", MEANWHILE),
        ],
        books=Books(
            rides={1: ONE, 3: TWO},
            keys={"a": 1, "b": 3},
            staged=[],
            last_sent=3,
            consumers={"c0": Standing(3, ONE + TWO, unbelieved=3)},
            dead_letters=[],
            terms={b"": (0, 0), b"first": (0, 1), b"void": (1, 1), b"second": (1, 3)},
        ),
        told=[
            Told(Record(1, 0, ONE, b"first"), 50),
            Told(Record(3, 1, GONE, b"lost"), MEANWHILE),
            Told(THEIRS, MEANWHILE),
            Told(Record(3, 1, TWO, b"void"), LATER),
            Told(Record(3, 1, TWO, b"second"), LATER),
            Told(Record(3, 1, TWO, b"second"), LATER),
        ],
        exits=[Exit("streamer0", -9, signal.SIGKILL, 10), Exit("api", 0, signal.SIGTERM, 10)],
        names=("c0",),
        restores=[Restore(began=100, killed=110)],
        foreign={THEIRS},
        blamed=["c0: WARNING c0 skipped 2 entries of another database's"],
    )


def lose_a_ride(evidence: Evidence) -> None:
    """It was answered after the restore."""
    del evidence.books.rides[3]


def lose_a_ride_of_before_the_backup(evidence: Evidence) -> None:
    del evidence.books.rides[1]


def lose_what_was_asked_for_after_the_crash(evidence: Evidence) -> None:
    evidence.asks[3].answers = [Answer(3, GONE, sent=110.1, came=112)]


def lose_what_was_answered_again_after_the_restore(evidence: Evidence) -> None:
    evidence.asks[3].answers.append(Answer(4, GONE, LATER, LATER))


def answer_another_distance(evidence: Evidence) -> None:
    evidence.asks[3].answers[0] = Answer(3, TWO, MEANWHILE, MEANWHILE)


def lose_one_and_keep_a_later_one(evidence: Evidence) -> None:
    """The backup held the later one, so it held all before it."""
    keep_another(evidence, MEANWHILE + 1)


def keep_another(evidence: Evidence, at: float) -> None:
    evidence.asks.append(answered(2, Decimal("5.045"), "e", at))
    evidence.books.rides[2] = Decimal("5.045")


def take_a_lost_one_twice(evidence: Evidence) -> None:
    evidence.books.rides |= {4: GONE, 5: GONE}


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
    evidence.books.terms[THEIRS.term] = (1, 3)


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
    evidence.books.consumers["c0"] = Standing(3, ONE + TWO, unbelieved=4)
    evidence.left_unread = True


def believe_one_less_not(evidence: Evidence) -> None:
    evidence.books.consumers["c0"] = Standing(3, ONE + TWO, unbelieved=2)
    evidence.read_again = True


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
        (lose_a_ride, "answered (as [3]) and is lost"),
        (lose_a_ride_of_before_the_backup, "answered (as [1]) and is lost"),
        (lose_what_was_asked_for_after_the_crash, "4.036 m was answered (as [3]) and is lost"),
        (lose_what_was_answered_again_after_the_restore, "answered (as [3, 4]) and is lost"),
        (answer_another_distance, "4.036 m was answered (as [3]) and is lost"),
        (lose_one_and_keep_a_later_one, "4.036 m was answered (as [3]) and is lost"),
        (take_a_lost_one_twice, "one ride of 4.036 m was asked for and there are [4, 5]"),
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
        (see_nothing, "the onlooker has seen no true entry"),
        (break_the_chain, "prev of ride 3 is 0, not 1"),
        (forge_an_entry, "ride 2 of 5.000 m, which is not there"),
        (believe_a_stranger, "ride 2 of 7.000 m, which is not there"),
        (write_in_nobodys_term, NOBODYS),
        (write_without_a_term, NOBODYS),
        (write_past_the_end_of_a_term, NOBODYS),
        (commit_nothing_of_another_chain, NOBODYS),
        (lose_a_past_before_the_backup, NOBODYS),
        (lose_a_past_that_nobody_asked_for, NOBODYS),
        (lose_a_past_that_was_asked_for_later, NOBODYS),
        (send_a_lost_past_for_ever, NOBODYS),
        (blame_a_stranger_that_never_was, "c0: WARNING c0 skipped 2 entries"),
        (believe_one_more_not, "c0 believed 4 entries not, and 3 are not true"),
        (believe_one_less_not, "c0 believed 2 entries not, and 3 are not true"),
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


def test_what_a_restore_undoes_is_told_apart() -> None:
    evidence = sound()
    gone = evidence.asks[3]
    assert undone(evidence) == ([gone], [gone])
    keep_another(evidence, MEANWHILE - 1)  # an earlier one may have been in the backup
    assert "is lost" not in "\n".join(check(evidence))
    evidence.restores.clear()
    assert "4.036 m was answered (as [3]) and is lost" in "\n".join(check(evidence))


def test_a_lost_ride_may_come_back_once() -> None:
    """Its client has asked again, and has another answer; or an early request has come late."""
    evidence = sound()
    gone, books = evidence.asks[3], evidence.books
    gone.answers.append(Answer(4, GONE, LATER, LATER))
    books.rides[4], books.keys["d"], books.last_sent = GONE, 4, 4
    books.consumers["c0"] = Standing(4, ONE + TWO + GONE, unbelieved=3)
    assert check(evidence) == []
    assert undone(evidence) == ([], [])
    gone.answers.pop()
    assert check(evidence) == []
    assert undone(evidence) == ([], [gone])


def watch(*looks: tuple[float, int]) -> Watch:
    found = Watch("", 1)
    found.looks = [Look(at, at, counted) for at, counted in looks]
    return found


def recovery(ended: float, asks: list[Ask], watch: Watch) -> list[float]:
    struck = [Struck(0, ended, "kill", "api")]
    return [found.seconds for found in recoveries(struck, asks, watch, [Restore(100, 110)])]


def test_recovery_is_measured_within_one_life_of_the_database() -> None:
    """Ride 8 is drawn twice: before a restore, and after it."""
    asks = [answered(8, ONE, "a", 105), answered(9, TWO, "b", 106), answered(8, GONE, "c", 120)]
    counted = watch((104, 7), (107, 8), (108, 9), (112, 5), (123, 8))
    assert recovery(104, asks, counted) == [3]
    assert recovery(111, asks, counted) == [12]


def test_what_is_lost_before_it_is_counted_is_no_recovery() -> None:
    asks = [answered(8, ONE, "a", 105), answered(6, TWO, "b", 120)]
    assert recovery(104, asks, watch((104, 7), (112, 5), (123, 6), (130, 8))) == [19]
    assert recovery(104, asks, watch((104, 7), (112, 5))) == []


def test_many_findings_of_one_kind_are_not_all_spelled_out() -> None:
    evidence = replace(sound(), errors=[f"error {n}" for n in range(100)])
    assert check(evidence)[-1] == "... and 95 more of these"


@pytest.mark.parametrize("option", ["--faults=nonsense", "--seconds=0", "--rate=-1", "--rate=nan"])
def test_an_option_that_makes_no_sense_is_refused(option: str) -> None:
    run = start(option)
    said, _ = run.communicate(timeout=LIMIT)
    assert run.returncode == 2
    assert option.partition("=")[0] in said
