"""The facts on a terminal, for a person and for a program: exact, and nothing raw."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from subprocess import PIPE

from rocket_rides.fleet import LOCK, identity, no_fleet_on
from rocket_rides.settings import Settings
from tests.support.facts import (
    A_TOTAL,
    MOMENT,
    WELL,
    completed_run,
    facts,
    failed_run,
    finding,
    held_run,
)
from watch.facts import Agreement, Facts, Reader, Reconciliation, Server
from watch.runs import AGREED, HELD, PARTS, WRONG, Run
from watch.screen import WIDTH, screen
from watch.status import in_json, no_fleet, status

NASTY = Reader("outside", "\x1b]0;owned\x07\x9b2J\nnext", None, 5, 9, 1.0)
FAR = replace(
    A_TOTAL,
    name="a-consumer-with-a-very-long-name",
    ride=123_456_789,
    records_behind=10_000,
    seconds_behind=86_400.0 * 400,
    total=Decimal("99999999999.999"),
)


def text(seen: Facts) -> str:
    return "\n".join(screen(seen))


def test_a_screen_has_eighty_columns() -> None:
    assert WELL.database
    run = Reconciliation(7, WELL.at, 500, 500, Decimal(1), {"consumer0": Decimal("-0.001")})
    judged = completed_run(10**9, verdicts=dict.fromkeys(PARTS, AGREED))
    seen = facts(
        readers=(*WELL.database.readers, FAR), reconciliations=(run,), completed_run=judged
    )
    lines = [line for line in screen(seen) if not line.startswith(("NOT WELL", "Note"))]
    assert len(lines) > 15
    assert max(map(len, lines)) <= WIDTH
    assert all(line == line.rstrip() for line in lines)


def test_a_long_name_is_whole_and_its_numbers_stay_in_their_columns() -> None:
    """Readers that are called alike differ in the end."""
    assert WELL.database
    alike = [replace(FAR, name="n" * 63 + end, ride=ride) for end, ride in (("1", 11), ("2", 22))]
    far = replace(FAR, name="n" * 80 + "3")
    lines = screen(facts(readers=(*WELL.database.readers, *alike, far)))
    places = [lines.index(f"total {each.name}") for each in alike]
    assert [lines[place + 1].split()[1] for place in places] == ["11", "22"]
    [header] = [line for line in lines if line.startswith("reader")]
    column = header.index("position") + len("position")
    assert [lines[place + 1][column - 2 : column] for place in places] == ["11", "22"]
    [cut] = [line for line in lines if line.endswith("n3")]
    assert (len(cut), cut[:8]) == (WIDTH, "total nn")


def test_all_that_is_known_is_on_it() -> None:
    assert "All is well." in text(WELL)
    for word in ("6,344,236.123", "consumer1", "1,204 entries", "one leads", "12,345"):
        assert word in text(WELL)
    assert WELL.database
    busy = replace(WELL.database.receipts, queued=3, in_flight=2, waiting=1)
    for word in ("12,300 delivered, 0 dead", "3 queued, 2 in flight, 1 waiting"):
        assert word in text(facts(receipts=busy))


def test_what_is_wrong_is_said_last_and_in_capitals() -> None:
    totals = {"consumer0": Decimal(1), "consumer1": Decimal(2)}
    lines = text(facts(agreement=Agreement(3, totals))).splitlines()
    assert lines[-1].startswith("NOT WELL: the totals disagree at position 3")
    assert any("DISAGREE" in line for line in lines[:-1])


def test_a_run_is_told_with_the_verdict_on_each_part_and_ten_findings_at_most() -> None:
    verdicts = dict.fromkeys(PARTS, AGREED) | {"warehouse": HELD, "rollup": WRONG}
    findings = (finding(), *[finding("minutes_wrong", held=False, about="14:03 is off")] * 9)
    run = held_run(
        verdicts=verdicts, findings=findings, open={"rides_changed": 1, "minutes_wrong": 14}
    )
    again = Run(9, MOMENT - timedelta(minutes=3))
    said = text(facts(completed_run=run, failed_run=failed_run(), run_under_way=again))
    lines = said.splitlines()
    assert "under way   run 9, for 3 min" in lines
    assert "failed      run 8, 2 h ago: Spark is away" in lines
    assert "last run    run 7 ended 11 h ago: held; oldest look 20 d ago" in lines
    assert f"{'':12}held: warehouse" in lines
    assert f"{'':12}wrong: rollup" in lines
    assert f"{'':12}agreed: totals, readers, records, receipts, outbox, ratings" in lines
    assert f"finding     held: {finding().about}" in lines
    assert lines.count("finding     wrong: 14:03 is off") == 9
    assert f"{'':12}and 5 more findings" in lines
    met = completed_run(findings=(finding("reader_recounts", held=False, about="one recounts"),))
    assert "finding     under way: one recounts" in text(facts(completed_run=met)).splitlines()


def test_no_name_reaches_the_terminal_raw() -> None:
    seen = facts(
        readers=(NASTY, replace(A_TOTAL, name=NASTY.name)),
        agreement=Agreement(3, {NASTY.name: Decimal(1), "b": Decimal(2)}),
        completed_run=held_run(verdicts={NASTY.name: HELD}, findings=(finding(about=NASTY.name),)),
        failed_run=failed_run(reason=NASTY.name),
    )
    shown = screen(seen)
    assert "owned" in "".join(shown)
    assert all(line.isprintable() for line in shown)


def test_servers_that_are_away_are_all_that_is_said() -> None:
    nothing = Server(False, "refused")
    away = replace(WELL, postgres=nothing, redis=nothing, database=None, log=None)
    assert text(away).splitlines()[2:] == [
        "NOT WELL: Postgres can't be used: refused",
        "NOT WELL: Redis can't be used: refused",
    ]


def test_where_an_embedded_server_is_stopped_no_fleet_runs(tmp_path: Path) -> None:
    """Unless its processes do, as while Redis is restarted."""

    def said(reason: str, **settings: str) -> str:
        away = Server(False, reason)
        seen = replace(WELL, postgres=away, redis=away, database=None, log=None)
        return no_fleet(seen, Settings.model_construct(None, data_dir=tmp_path, **settings))

    stopped = "No such file or directory"
    sentence = no_fleet_on(tmp_path)
    assert said(stopped) == said("Connection refused", redis_url="redis://elsewhere") == sentence
    assert said("it does not answer") == ""
    wait = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(wait, stdin=PIPE, stdout=PIPE) as servers:
        assert servers.stdout
        servers.stdout.readline()
        (tmp_path / LOCK).write_text(identity(servers.pid))
        assert said(stopped) == ""
        (tmp_path / LOCK).write_text(f"{servers.pid} 1")  # another process had this pid before
        assert said(stopped) == sentence
        (tmp_path / LOCK).write_text(identity(servers.pid))
        servers.kill()
        os.waitid(os.P_PID, servers.pid, os.WEXITED | os.WNOWAIT)
        assert said(stopped) == sentence  # although nobody has asked yet how it ended
    assert said(stopped) == sentence


def test_spaces_are_such_as_a_person_types_and_a_program_looks_for() -> None:
    late = facts(readers=(replace(A_TOTAL, records_behind=1, seconds_behind=40.0),))
    assert "1 record and 40 s behind" in text(late)
    assert "1 record and 40 s behind" in in_json(late, 1)
    assert "\N{NO-BREAK SPACE}" not in text(late)


def test_the_exit_status_tells_well_from_wrong_from_unknown() -> None:
    wrong = facts(readers=(replace(A_TOTAL, seconds_behind=99.0),))
    assert [status(WELL), status(wrong)] == [0, 1]
    unknown = replace(wrong, redis=Server(False, "refused"), log=None)
    assert status(unknown) == status(replace(unknown, redis=Server(True))) + 1 == 2


def test_json_has_everything_with_all_of_its_digits() -> None:
    huge = Decimal("12345678901234567890123456789012345.678")
    wrong = {"consumer0": huge, "consumer1": Decimal("0.100")}
    line = in_json(facts(readers=(replace(A_TOTAL, total=huge),), agreement=Agreement(3, wrong)), 1)
    assert "\n" not in line
    told = json.loads(line, parse_float=Decimal)
    assert (told["status"], told["problems"][0]["kind"]) == (1, "disagrees")
    assert told["database"]["readers"][0]["total"] == huge
    assert '"consumer1":0.100' in line
    assert told["database"]["agreement"]["agree"] is False
    assert told["at"] == "2025-11-22T14:03:22Z"
    assert told["log"]["bytes"] == 213_000
    assert told["database"]["completed_run"]["verdicts"]["warehouse"] == "agreed"
    assert told["database"]["failed_run"] is None
    assert in_json(facts(readers=(NASTY,)), 1).isprintable()
    assert json.loads(in_json(replace(WELL, database=None), 2))["database"] is None
