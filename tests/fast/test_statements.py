"""Statements stand whole: what two share, or one and Python, is written twice, and equal."""

import re

from analytics import emit, runs
from analytics.freeze import READERS
from analytics.minutes import END, FIRST
from analytics.proofs import rollup
from api.booking import FENCE
from api.consumers import CONSUMERS
from cells.router import keys
from consumers import remove
from consumers.receipts.statements import LONGEST_WAIT, MAKE_DUE, TAKE
from rocket_rides.health import SILENCE
from rocket_rides.locks import Lock
from rocket_rides.sessions import API, RECEIPTS, ROLLUP
from rocket_rides.settings import PROJECT
from rocket_rides.words import DEAD, DELIVERED, IN_FLIGHT, QUEUED, WAITING
from unified_log import held_out, terms
from unified_log.database import LAST_DRAWN
from unified_log.readers.committed import BOUNDS
from unified_log.sessions import READER, STARTING, STREAMER
from unified_log.streamer.checks import SEQUENCE
from unified_log.streamer.drain import MOVE_LAST_SENT
from unified_log.streamer.leaders_term import LEAVE_OUT, NEVER_SENT
from watch.asking_postgres import FACTS
from watch.facts import MOST
from watch.runs import SHOWN, VERDICTS

SCHEMA = (PROJECT / "migrations/versions/0010_schema.sql").read_text()


def parts(pattern: str, *statements: str) -> set[str]:
    """What a pattern finds in statements, which each have it, without regard to line breaks."""
    found = [re.findall(pattern, " ".join(statement.split())) for statement in statements]
    assert all(found), pattern
    return {each for of_one in found for each in of_one}


def test_no_statement_is_put_together() -> None:
    """Ruff finds those that are. The one that is allowed has the names and values of settings."""
    packages = {path.parent for path in PROJECT.glob("*/__init__.py")} - {PROJECT / "tests"}
    files = [file for package in packages - {PROJECT / "lab"} for file in package.rglob("*.py")]
    allowed = [file.name for file in files if "noqa: S608" in file.read_text()]
    assert allowed == ["session_settings.py"]


def test_the_page_asks_about_the_sessions_and_locks_that_there_are() -> None:
    assert parts(r"number = (\d+)", FACTS) == {f"{Lock.LEADER:d}", f"{Lock.ROLLUP:d}"}
    names = ", ".join(f"'{name.strip()}'" for name in (API, STREAMER, ROLLUP, RECEIPTS, READER))
    assert parts(r"split_part\(application_name, ' ', 1\) IN \((.*?)\)", FACTS) == {names}
    suffix = f"right(application_name, {len(STARTING)}) = '{STARTING}' AS starting"
    assert parts(r"right\(application_name.*? AS starting", FACTS) == {suffix}
    assert parts(r"starts_with\(name, '(.*?)'\)", FACTS) == {RECEIPTS}
    assert parts(r"sessions WHERE name = '(.*?)'", FACTS) == {STREAMER, ROLLUP}


def test_the_api_counts_further_than_the_page() -> None:
    [limit] = parts(r"(?:standings|receipts_lag)\((\d+)\)", CONSUMERS)
    assert int(limit) > MOST


def test_the_page_has_pythons_numbers() -> None:
    assert parts(r"state_change < now\(\) - interval '(\d+) seconds'", FACTS) == {f"{SILENCE}"}
    assert parts(r"ORDER BY held DESC, number LIMIT (\d+)", FACTS) == {f"{SHOWN}"}


def test_a_receipts_state_is_one_of_pythons_words() -> None:
    function = parts(r"CREATE FUNCTION receipt_state.*?;", SCHEMA)
    words = {DELIVERED, DEAD, IN_FLIGHT, WAITING, QUEUED}
    assert parts(r"(?:THEN|ELSE) '(.*?)'", *function) == words
    counted = parts(r"FILTER \(WHERE state = '(.*?)'\)", SCHEMA)
    assert counted == {QUEUED, IN_FLIGHT, WAITING}


def test_receipts_are_counted_from_where_they_are_taken() -> None:
    since = r"least\( ?(\(SELECT created_at.*? interval '1 minute')"
    assert len(parts(since, TAKE, SCHEMA)) == 1


def test_the_page_and_the_reconciliation_know_alike_who_recounts() -> None:
    pattern = r"recount IS NOT NULL AND \(.*?\)"
    assert len(parts(pattern, READERS, SCHEMA.replace('"position"', "position"))) == 1


def test_no_wait_of_a_receipt_is_too_long() -> None:
    assert parts(r"> now\(\) \+ make_interval\(secs => (.*?)\)", TAKE, MAKE_DUE) == {
        f"{LONGEST_WAIT:.0f}"
    }


def test_how_far_numbers_were_drawn_is_asked_in_the_same_words() -> None:
    assert parts(r"SELECT last_value.*? FROM log_position", BOUNDS, SEQUENCE) == {LAST_DRAWN}


def test_readers_and_the_leader_mean_the_same_newest_term() -> None:
    assert len(parts(r"SELECT term FROM terms .*? LIMIT \d+", BOUNDS, MOVE_LAST_SENT)) == 1
    assert parts(r"SELECT coalesce.*? FROM terms", BOUNDS) == {" ".join(terms.ALL.split())}


def test_what_is_left_out_was_never_sent() -> None:
    for condition in parts(r"NOT EXISTS \(SELECT FROM .*?\)", NEVER_SENT):
        assert condition in LEAVE_OUT


def test_who_locks_a_record_that_is_held_out_also_changes_it() -> None:
    which = r"WHERE (\(%\(kind\).*? END)"
    assert len(parts(which, held_out.LOCK, held_out.RETRY, held_out.DROP)) == 1


def test_a_run_is_completed_when_it_has_one_of_the_verdicts() -> None:
    of_runs = (runs.LAST_COMPLETED, runs.KNOWN_LEDGERS, runs.APPROVED, emit.PAST_RUNS)
    others = (remove.REMOVE, remove.READERS, FACTS)
    [verdicts] = parts(r"status IN \((.*?)\)", *of_runs, *others)
    assert {*verdicts.split(", ")} == {f"'{verdict}'" for verdict in VERDICTS}


def test_those_are_removed_who_are_said_to_be_there() -> None:
    assert len(parts(r"WITH (last AS .*? <> 'minutes' \))", remove.REMOVE, remove.READERS)) == 1


def test_days_are_those_that_python_has() -> None:
    asking = (rollup.UNPROVED_DAYS, rollup.DAYS_ROLLED_UP, rollup.SET_ASIDE)
    assert parts(r">= '(.*?)'", *asking) == {f"{FIRST}"}
    assert parts(r"< '(.*?)'", *asking) == {f"{END}"}


def test_a_fence_is_what_the_api_knows_of_the_slots_that_a_move_copies() -> None:
    assert parts(r"CONSTRAINT (?:IF EXISTS )?(\w+)", keys.PUT_FENCE) == {FENCE}
    assert len(parts(r"left\(.*?\), 2\)", keys.PUT_FENCE, keys.OUT, keys.DIFFERENT)) == 1
    assert parts(r"rocket_rides\.\w+", keys.PUT_FENCE, keys.COPIES_KEYS) == {
        "rocket_rides.copies_keys"
    }
    assert f"'{keys.LOCK_TIMEOUT}'" in keys.LOCK
