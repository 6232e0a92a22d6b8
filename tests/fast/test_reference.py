"""The pages that are made from the code say what it says now; `make docs` writes them."""

import pytest

from lab.blocks import Blocks, contents, filled
from lab.reference import PAGES
from rocket_rides.settings import PROJECT
from tests.proofs.page import PAGE, claims

EVERY_PAGE: dict[str, Blocks] = PAGES | {PAGE: {"claims": claims}}


@pytest.mark.parametrize("name", EVERY_PAGE)
def test_a_page_says_what_the_code_says(name: str) -> None:
    page = (PROJECT / name).read_text()
    assert contents(page).keys() == EVERY_PAGE[name].keys()
    assert filled(page, EVERY_PAGE[name]) == page, "make docs writes it anew"


def test_a_page_that_says_something_else_would_be_noticed() -> None:
    page = (PROJECT / "docs/settings.md").read_text()
    stale = page.replace("`8000`", "`8001`")
    assert stale != page
    assert filled(stale, PAGES["docs/settings.md"]) == page
