"""docs/alerts.yml and docs/grafana.json: PromQL that is valid, of metrics that there are."""

import json
import re
from typing import Any

import promql_parser
import pytest
import yaml

from rocket_rides.settings import PROJECT, Settings
from tests.support.metrics import series
from tests.support.pages import MODULE, TARGET, anchors, is_program, targets
from tests.support.whole_fleet import FACTS

GROUPS = yaml.safe_load((PROJECT / "docs/alerts.yml").read_text())["groups"]
ALERTS: list[dict[str, Any]] = [rule for group in GROUPS for rule in group["rules"]]
DASHBOARD = json.loads((PROJECT / "docs/grafana.json").read_text())
PANELS: list[dict[str, Any]] = [it for it in DASHBOARD["panels"] if it["type"] != "row"]
# Grafana puts an interval in.
LINES = [
    (target["expr"].replace("$__rate_interval", "5m"), target["legendFormat"])
    for panel in PANELS
    for target in panel["targets"]
]
EXPRESSIONS = [*(rule["expr"] for rule in ALERTS), *(expression for expression, _ in LINES)]
# What docs/alerts.yml promises of each severity.
SEVERITIES = {"critical", "warning", "info"}
METRIC = re.compile(r"\brocket_rides_[a-z_]+[a-z]\b")
LABEL = re.compile(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}")
LINK = re.compile(r"(docs/[\w-]+\.md)(?:#([\w-]+))?")
SETTING = re.compile(r"\b[A-Z]+(?:_[A-Z]+)+\b")

# The series of a whole fleet.
SERIES = [(name, dict(labels)) for name, labels in series(FACTS)]

an_alert = pytest.mark.parametrize("rule", ALERTS, ids=[rule["alert"] for rule in ALERTS])


def parts(expression: str) -> list[promql_parser.Expr]:
    """An expression and all that it consists of. Raises ValueError where it is not valid."""
    found: list[promql_parser.Expr] = []
    promql_parser.walk(promql_parser.parse(expression), lambda part: found.append(part))
    return found


def selectors(expression: str) -> list[promql_parser.VectorSelector]:
    return [it for it in parts(expression) if isinstance(it, promql_parser.VectorSelector)]


def matches(matcher: promql_parser.Matcher, labels: dict[str, str]) -> bool:
    value = labels.get(matcher.name, "")
    if matcher.op in (promql_parser.MatchOp.Equal, promql_parser.MatchOp.NotEqual):
        found = matcher.value == value
    else:
        found = re.fullmatch(matcher.value, value) is not None
    return found != (matcher.op in (promql_parser.MatchOp.NotEqual, promql_parser.MatchOp.NotRe))


def found(selector: promql_parser.VectorSelector) -> list[dict[str, str]]:
    """The labels of the series that it finds."""
    return [
        labels
        for name, labels in SERIES
        if name == selector.name
        and all(matches(matcher, labels) for matcher in selector.matchers.matchers)
    ]


def lost(expression: str) -> list[str]:
    """Those of its selectors that find nothing."""
    return [str(selector) for selector in selectors(expression) if not found(selector)]


def test_every_expression_selects_what_there_is() -> None:
    assert [(it, lost(it)) for it in EXPRESSIONS if lost(it) or not selectors(it)] == []


def test_every_metric_that_is_named_is_there() -> None:
    pages = [*PROJECT.glob("docs/*.md"), PROJECT / "docs/alerts.yml"]
    named = {name for page in pages for name in METRIC.findall(page.read_text())}
    assert named
    assert named <= {name for name, _ in SERIES}


def test_only_counters_have_a_rate() -> None:
    ranges = [
        part.vector_selector.name
        for expression in EXPRESSIONS
        for part in parts(expression)
        if isinstance(part, promql_parser.MatrixSelector)
    ]
    assert ranges
    assert [name for name in ranges if not str(name).endswith("_total")] == []


def test_an_expression_that_is_wrong_or_finds_nothing_is_noticed() -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parts("rate(up)")
    assert len(lost("rocket_rides_up{server!~'p.*|redis'} * 2")) == 1


@an_alert
def test_an_alert_is_complete(rule: dict[str, Any]) -> None:
    assert rule.keys() - {"for"} == {"alert", "expr", "labels", "annotations"}
    assert promql_parser.parse_duration(rule.get("for", "1m"))
    assert [each["alert"] for each in ALERTS].count(rule["alert"]) == 1
    assert rule["labels"].keys() == {"severity"}
    assert rule["labels"]["severity"] in SEVERITIES
    assert rule["annotations"].keys() == {"summary", "description"}
    # Nobody is woken by what passes by itself.
    assert rule["labels"]["severity"] != "critical" or "for" in rule


@an_alert
def test_an_alert_says_what_to_do_with_what_there_is(rule: dict[str, Any]) -> None:
    description = rule["annotations"]["description"]
    links, commands = LINK.findall(description), set(TARGET.findall(description))
    assert links or commands, "it names neither a page nor a command"
    assert commands <= targets()
    assert [it for it in MODULE.findall(description) if not is_program(it.rstrip("."))] == []
    settings = {name.lower() for name in SETTING.findall(description)}
    assert settings <= Settings.model_fields.keys()
    for page, anchor in links:
        assert (PROJECT / page).exists()
        assert not anchor or anchor in anchors(PROJECT / page), f"{page}#{anchor}"


@an_alert
def test_an_alert_names_labels_that_its_series_have(rule: dict[str, Any]) -> None:
    named = set(LABEL.findall(" ".join(rule["annotations"].values())))
    first = selectors(rule["expr"])[0]
    assert all(named <= labels.keys() for labels in found(first))


def test_a_legend_names_labels_that_its_series_have() -> None:
    for expression, legend in LINES:
        [selector] = selectors(expression)
        named = set(LABEL.findall(legend))
        assert all(named <= labels.keys() for labels in found(selector)), legend
