"""A handler that can't be one is refused in a sentence, before anything connects."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, ClassVar

import pytest

from unified_log.process import Stop
from unified_log.readers import running
from unified_log.readers.handler import Handler


class Good(Handler):
    KIND = "good"
    TYPES: ClassVar[Any] = {"good.create": id}

    def take(self, records: object) -> None:
        """Do nothing."""


class Untaking(Handler):
    KIND = "bad"
    TYPES: ClassVar = {"bad.create": id}


class Unkind(Handler):
    TYPES: ClassVar = {"bad.create": id}

    def take(self, records: object) -> None:
        """Do nothing."""


def of(**declared: object) -> type[Good]:
    return type("Bad", (Good,), declared)


async def later(*_: object) -> None:
    """Do nothing."""


def yielding(*_: object) -> Iterator[None]:
    yield


async def both(*_: object) -> AsyncIterator[None]:
    yield


KIND = "its KIND has to be 1 to 64 printable characters"
TYPES = "its TYPES have to map at least one type of record to the function that parses it"
LATER = "is async, or has a yield: it would never run"
CLASS = "a class derived from unified_log.readers.handler.Handler is expected"

REFUSED = [
    (Untaking, "it has no take"),
    (Unkind, KIND),
    *[(of(KIND=kind), KIND) for kind in ("", " ", "k" * 65, "a\nb", "\ud800", 7)],
    (of(KIND="outside"), "the KIND 'outside' is that of readers without a handler"),
    (of(TYPES={}), TYPES),
    (of(TYPES=["bad.create"]), TYPES),
    (of(TYPES=None), TYPES),
    (of(TYPES={"bad.create": len, b"b": id}), "b'b', one of its TYPES, is no str"),
    (of(TYPES={"a.b": "len"}), "its TYPES map 'a.b' to 'len', which can't be called"),
    (of(TYPES={"a.b": later}), f"what its TYPES map 'a.b' to {LATER}"),
    (of(take=later), f"its take {LATER}"),
    (of(load=yielding), f"its load {LATER}"),
    (of(begin=both), f"its begin {LATER}"),
    (int, CLASS),
    (len, CLASS),
]


class Nowhere:
    """Whoever asks for a server has gone too far."""

    batch_size = 1

    @property
    def postgres_url(self) -> str:
        raise ConnectionError


NOWHERE: Any = Nowhere()


@pytest.mark.parametrize(("handler", "why"), REFUSED, ids=[str(n) for n in range(len(REFUSED))])
def test_a_class_that_is_no_handler_is_refused_in_one_sentence(
    handler: Any, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        running.run("one", handler, [], NOWHERE, Stop())
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"{handler.__name__} is refused: {why}\n"


def test_one_that_can_be_a_handler_connects() -> None:
    for kind in ("k" * 64, "long rides", "käufer"):
        with pytest.raises(ConnectionError):
            running.run("one", of(KIND=kind), [], NOWHERE, Stop())
