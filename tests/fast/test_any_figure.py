"""Whatever was measured: it is shown as what it was, rounded, and read again from the page."""

from hypothesis import given
from hypothesis import strategies as st

from lab.benchmarks import docs
from lab.benchmarks.figures import Figure, Goal, number, table
from tests.support.properties import always

MEASURED = st.floats(1e-6, 1e12)
GOALS = st.builds(
    Goal, st.sampled_from(["value", "ratio"]), st.sampled_from(["<=", ">="]), MEASURED
)
NAMES = st.text("abc /é", min_size=1, max_size=8)


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
    )


@always
@given(MEASURED)
def test_a_number_is_rounded_to_three_digits_or_to_one(value: float) -> None:
    shown = float(number(value).replace(",", ""))
    assert abs(shown - value) <= max(value * 0.005, 0.5 if value >= 100 else 0)
    assert number(shown).replace(",", "") == number(value).replace(",", "")


@always
@given(figures(), st.booleans())
def test_a_figure_on_the_page_is_the_same_figure(figure: Figure, doubtful: bool) -> None:
    page = f"<!--figures:part-->\n\n{table([figure], doubtful=doubtful)}\n\n<!--end-->"
    [row] = docs.rows(page)
    assert row == ("part", *figure.cells(doubtful=doubtful))


@always
@given(figures())
def test_a_goal_is_met_or_missed_by_the_figure_itself_and_said_so(figure: Figure) -> None:
    *_, said = figure.cells()
    assert ("missed" in said) == (figure.met is False)
    assert (said == "") == (figure.goal is None)
    if figure.ratio is not None:
        ratios = [run / limit for run, limit in zip(figure.runs, figure.limits, strict=True)]
        assert min(ratios) <= figure.ratio <= max(ratios)
