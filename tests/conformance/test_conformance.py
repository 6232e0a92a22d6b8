"""Ours survives everything; each naive outbox is seen to fail where it is known to."""

from collections.abc import Iterator

import pytest

from tests.conformance.known import IMPLEMENTATIONS, KNOWN, Demand
from tests.conformance.servers import Servers, servers
from tests.conformance.trial import tried


@pytest.fixture(scope="module")
def private() -> Iterator[Servers]:
    with servers() as found:
        yield found


@pytest.mark.proves("survives")
@pytest.mark.parametrize("demand", KNOWN, ids=lambda demand: demand.__name__)
@pytest.mark.parametrize("outbox", IMPLEMENTATIONS)
def test_an_outbox_does_what_it_is_known_to_do(
    private: Servers, outbox: str, demand: Demand
) -> None:
    known = dict(zip(IMPLEMENTATIONS, KNOWN[demand], strict=True))
    assert tried(IMPLEMENTATIONS[outbox], demand, private) is known[outbox]
