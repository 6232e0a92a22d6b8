"""The metrics, read by the client library's own parsers."""

import re
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import get_args

import pytest
from prometheus_client.parser import text_string_to_metric_families as text_families

from tests.support.facts import AWAY
from tests.support.metrics import OPENMETRICS, PARSERS, TEXT, series
from tests.support.metrics import value as value_in
from tests.support.whole_fleet import DATABASE, FACTS, READERS, total
from watch import metrics
from watch.facts import Facts, Reader
from watch.problems import Kind, problems


def value(facts: Facts, name: str, **labels: str) -> float | None:
    return value_in(series(facts), name, **labels)


def names(facts: Facts) -> set[str]:
    return {name for name, _ in series(facts)}


def with_readers(*readers: Reader) -> Facts:
    return replace(FACTS, database=replace(DATABASE, readers=readers))


def test_both_formats_tell_the_same() -> None:
    told = [series(FACTS, accept) for accept in PARSERS]
    assert len(told[0]) > 80
    assert told[0] == told[1] == told[2]


def test_what_is_told_is_what_is_known() -> None:
    told = {
        ("up", "server=postgres"): 1,
        ("cell", "cell=0"): 1,
        ("taken_total", ""): 1005,
        ("records_staged", ""): 5,
        ("oldest_staged_age_seconds", ""): 0.125,
        ("leader", "role=rollup"): 1,
        ("standbys", "role=streamer"): 1,
        ("log_bytes", ""): 213_000,
        ("reader_lag_records", "kind=total reader=consumer1"): 10,
        ("reader_lag_seconds", "kind=total reader=consumer1"): 5,
        ("reader_distance_meters", "kind=total reader=consumer0"): 263412.305,
        ("reader_healed_meters_total", "kind=total reader=consumer0"): 6344.236,
        ("reader_gaps_healed_total", "kind=total reader=consumer0"): 2,
        ("reader_crashes_injected_total", "kind=rollup reader=rollup"): 7,
        ("reader_processes", "kind=rollup reader=rollup"): 1,
        ("totals_agree", ""): 1,
        ("rollup_dirty_minutes", ""): 3,
        ("receipts_dead", ""): 10,
        ("receipts_queued", ""): 13,
        ("receipts_in_flight", ""): 8,
        ("receipts_waiting", ""): 4,
        ("reader_entries_ignored_total", "kind=group reader=receipts"): 14,
        ("reader_entries_passed_total", "kind=total reader=consumer0"): 8,
        ("reader_entries_passed_total", "kind=group reader=receipts"): 16,
        ("reader_entries_malformed_total", "kind=group reader=receipts"): 15,
        ("receipts_swept_total", ""): 6,
        ("receipts_given_up_total", ""): 11,
        ("malformed_entries", "kind=rollup"): 1,
        ("reconciliation_age_seconds", ""): 35 * 3600,
        ("reconciliation_drift_meters", "reader=consumer0"): 0,
        ("reconciliation_drift_meters", "reader=consumer1"): 0.001,
        ("run_status", "status=held"): 1,
        ("run_status", "status=agreed"): 0,
        ("run_age_seconds", ""): 11 * 3600,
        ("run_verdict", "part=totals verdict=wrong"): 1,
        ("run_verdict", "part=totals verdict=agreed"): 0,
        ("run_verdict", "part=warehouse verdict=held"): 1,
        ("failed_runs", ""): 5,
        ("open_findings", "kind=rides_changed"): 1,
        ("open_findings", "kind=warehouse_changed"): 2,
        ("oldest_look_age_seconds", ""): 20 * 86_400,
    }
    for (name, labels), known in told.items():
        assert value(FACTS, name, **dict(it.split("=") for it in labels.split())) == known, name


def test_problems_are_counted_by_their_kind() -> None:
    found = Counter(problem.kind for problem in problems(FACTS))
    assert found
    for kind in get_args(Kind):
        assert value(FACTS, "problems", kind=kind) == found[kind], kind


def test_without_postgres_no_problem_is_said_to_be_none_but_that() -> None:
    unknown = replace(FACTS, postgres=AWAY, database=None)
    told = {kind: value(unknown, "problems", kind=kind) for kind in get_args(Kind)}
    assert told == dict.fromkeys(get_args(Kind)) | {"away": 1}


def test_when_it_was_gathered_is_told_by_the_clock_that_prometheus_shares() -> None:
    told = value(
        replace(FACTS, looked_at=FACTS.at + timedelta(hours=1)), "gathered_timestamp_seconds"
    )
    assert told == FACTS.at.timestamp() + 3600
    assert value(FACTS, "gathered_timestamp_seconds") == FACTS.at.timestamp()


@pytest.mark.parametrize("accept", [TEXT, OPENMETRICS])
def test_names_and_units_follow_prometheus_rules(accept: str) -> None:
    body, _ = metrics.render(FACTS, accept)
    for family in PARSERS[accept](body.decode()):
        name = family.name.removesuffix("_total")
        assert re.fullmatch(r"rocket_rides_[a-z]+(_[a-z]+)*", name), name
        assert family.type in {"counter", "gauge"}, name
        # A unit is spelled out and in base units, at the end; a counter alone ends in `_total`.
        words = set(name.split("_"))
        assert not words & {"ms", "milliseconds", "minute", "hours", "kilometers", "kb", "percent"}
        if accept == OPENMETRICS:
            ending = name.rsplit("_", 1)[-1]
            assert family.unit == (ending if ending in {"seconds", "meters", "bytes"} else ""), name
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter"), name
        assert re.fullmatch(r"[A-Z0-9].*\.", family.documentation), name


@pytest.mark.parametrize(
    ("away", "facts"),
    [
        ("postgres", replace(FACTS, postgres=AWAY, database=None)),
        ("redis", replace(FACTS, redis=AWAY, log=None)),
    ],
)
def test_a_server_that_is_away_is_named_and_what_it_would_tell_is_left_out(
    away: str, facts: Facts
) -> None:
    [here] = {"postgres", "redis"} - {away}
    assert (value(facts, "up", server=away), value(facts, "up", server=here)) == (0, 1)
    assert ("rocket_rides_log_bytes" in names(facts)) == (away == "postgres")
    assert ("rocket_rides_taken_total" in names(facts)) == (away == "redis")
    assert names(facts) < names(FACTS)


def test_what_is_unknown_is_left_out() -> None:
    assert value(FACTS, "reader_lag_records", kind="group", reader="strangers") is None
    assert value(FACTS, "reader_lag_records", kind="outside", reader="latecomer") == 1000
    assert value(FACTS, "reader_processes", kind="outside", reader="latecomer") is None
    never = replace(
        FACTS,
        database=replace(DATABASE, reconciliations=(), completed_run=None, agreement=None),
    )
    assert not names(never) & {
        "rocket_rides_run_status",
        "rocket_rides_run_age_seconds",
        "rocket_rides_oldest_look_age_seconds",
        "rocket_rides_reconciliation_age_seconds",
        "rocket_rides_reconciliation_drift_meters",
        "rocket_rides_totals_agree",
    }


@pytest.mark.parametrize(
    "name", ['"} 1\nup{a="', "\\", "a b{c}=#", "ride\u2028été", "🚀", "'\"\\n", "\x1b[2J", "\0"]
)
@pytest.mark.parametrize("accept", [TEXT, OPENMETRICS])
def test_a_readers_name_may_hold_anything(name: str, accept: str) -> None:
    told = series(with_readers(total(name)), accept)
    shown = {dict(labels)["reader"] for _, labels in told if "reader" in dict(labels)}
    assert shown == {metrics.text(name), "receipts"}
    assert name.isprintable() == (metrics.text(name) == name)


def test_a_stranger_cannot_crowd_out_the_fleets_own_readers() -> None:
    crowd = [Reader("group", f"a{number}", None, 1, 0, 0) for number in range(1000)]
    facts = with_readers(*crowd, *READERS)
    told = {dict(labels)["reader"] for _, labels in series(facts) if "reader" in dict(labels)}
    assert len(told - {"receipts"}) == metrics.MOST_READERS
    assert {reader.name for reader in READERS if reader.is_own} <= told
    assert value(facts, "readers_left_out") == 1000 + len(READERS) - metrics.MOST_READERS


@pytest.mark.parametrize(
    "accept",
    ["", "*/*", "x" * 10_000, "text/plain;version=x", "application/openmetrics-text;version=1.x",
     "application/openmetrics-text;version=é", "application/openmetrics-text;version=\udcff"],
)  # fmt: skip
def test_whatever_a_client_accepts_it_is_told_in_text(accept: str) -> None:
    body, content_type = metrics.render(FACTS, accept)
    assert content_type.startswith("text/plain; version=0.0.4")
    assert list(text_families(body.decode()))
