"""The charts of the page: what they say in words, and what they do not draw."""

from dataclasses import replace

from tests.support.facts import (
    AWAY,
    database,
    facts,
    total,
)
from tests.support.rendering import rendered
from watch.history import History


def test_each_chart_says_in_words_what_it_shows() -> None:
    history = History()
    for second in range(61):
        ours = replace(total(seconds_behind=9.0 if second == 30 else 0.25), kind="ratings")
        outside = replace(total("guest", seconds_behind=99.0), kind="outside", processes=None)
        rides = replace(database().rides, taken=second * 3)
        history.add(facts(second, readers=(ours, outside), rides=rides), second)
    _, parts = rendered(facts(61), history=history)
    assert "latest 3.0, least 3.0, most 3.0" in parts.parts["chart-rides"]
    assert (
        "latest 250 ms, least 250 ms, most 9.0 s".replace(" ms", "\xa0ms").replace("0 s", "0\xa0s")
        in (parts.parts["chart-lag"])
    )


def test_an_absent_server_is_a_hole_in_a_chart_and_a_restored_count_no_negative_rate() -> None:
    history = History()
    for second in (*range(0, 250, 5), *range(255, 300, 5)):  # nobody looked at 250
        taken = replace(database().rides, taken=1_000_000 + second if second < 200 else second)
        seen = facts(second, rides=taken)
        gone = 50 <= second < 100
        history.add(replace(seen, database=None, postgres=AWAY) if gone else seen, second)
    values = [point.value for point in history.rides()]
    known = [value for value in values if value is not None]
    assert values.count(None) == 12  # ten looks without Postgres, the first one after, the restore
    assert set(known) == {1.0}
    _, parts = rendered(facts(300), history=history)
    assert parts.parts["chart-rides"].count('class="line"') == 2
