"""Whatever was measured: it is kept as it was, and shown as what it was, rounded."""

import json
from dataclasses import asdict

from hypothesis import given
from hypothesis import strategies as st

from lab.benchmarks.figures import Figure, Goal, number
from tests.support.properties import always

MEASURED = st.floats(1e-6, 1e12)
GOALS = st.builds(
    Goal, st.sampled_from(["value", "ratio"]), st.sampled_from(["<=", ">="]), MEASURED
)
NAMES = st.text("abc /|é", min_size=1, max_size=8)


@st.composite
def figures(draw: st.DrawFn) -> Figure:
    pairs = draw(st.lists(st.tuples(MEASURED, MEASURED), min_size=1, max_size=5))
    runs, limits = ([pair[i] for pair in pairs] for i in (0, 1))
    limited = draw(st.booleans())
    return Figure(
        draw(NAMES),
        draw(NAMES),
        draw(NAMES) if limited else "",
        draw(st.none() | GOALS),
        runs,
        limits if limited else [],
        draw(st.booleans()),
    )


@always
@given(MEASURED)
def test_a_number_is_rounded_to_three_digits_or_to_one(value: float) -> None:
    shown = float(number(value).replace(",", ""))
    assert abs(shown - value) <= max(value * 0.005, 0.5 if value >= 100 else 0)
    assert number(shown).replace(",", "") == number(value).replace(",", "")


@always
@given(figures())
def test_a_figure_on_record_is_the_same_figure(figure: Figure) -> None:
    again = Figure.from_json(json.loads(json.dumps(figure.as_json())))
    assert asdict(again) == asdict(figure)
    assert (again.met, again.cells()) == (figure.met, figure.cells())


@always
@given(figures())
def test_a_goal_is_met_or_missed_by_the_figure_itself_and_said_so(figure: Figure) -> None:
    *_, said = figure.cells()
    assert ("missed" in said) == (figure.met is False)
    assert (said == "") == (figure.goal is None)
    if figure.ratio is not None:
        ratios = [run / limit for run, limit in zip(figure.runs, figure.limits, strict=True)]
        assert min(ratios) <= figure.ratio <= max(ratios)
