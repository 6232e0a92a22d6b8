"""The shape of the tests: tiers that share support, and no test that another one needs."""

import re

from rocket_rides.settings import PROJECT

TESTS = PROJECT / "tests"
TIERS = ("fast", "services", "analytics", "fleet")  # each a folder
FILES = sorted(TESTS.rglob("*.py"))
IN_A_TIER = re.compile(rf"^\s*(?:from|import) tests\.(?:{'|'.join(TIERS)})\b", re.MULTILINE)


def test_no_test_is_imported_by_another_or_by_what_they_share() -> None:
    assert [path for path in FILES if IN_A_TIER.search(path.read_text())] == []


def test_every_test_is_in_a_tier() -> None:
    tests = [path.relative_to(TESTS) for path in FILES if path.name.startswith("test_")]
    assert {test.parts[0] for test in tests} == {*TIERS}
