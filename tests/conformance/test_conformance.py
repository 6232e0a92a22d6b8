"""Ours survives everything; each naive outbox is seen to fail where it is known to."""

from collections.abc import Iterator

import pytest

from tests.conformance.known import HOLDS, IMPLEMENTATIONS, KNOWN, Demand
from tests.conformance.servers import Servers, servers
from tests.conformance.trial import Verdict, tried
from tests.conformance.unified import Unified

CASES = [
    pytest.param(outbox, demand, known, id=f"{outbox}-{demand.__name__}")
    for demand, verdicts in KNOWN.items()
    for outbox, known in zip(IMPLEMENTATIONS, verdicts, strict=True)
    if known is not HOLDS or IMPLEMENTATIONS[outbox] is Unified
]


@pytest.fixture(scope="module")
def private() -> Iterator[Servers]:
    with servers() as found:
        yield found


@pytest.mark.proves("survives")
@pytest.mark.parametrize(("outbox", "demand", "known"), CASES)
def test_an_outbox_does_what_it_is_known_to_do(
    private: Servers, outbox: str, demand: Demand, known: Verdict
) -> None:
    assert tried(IMPLEMENTATIONS[outbox], demand, private) is known
