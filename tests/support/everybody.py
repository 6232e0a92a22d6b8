"""Runs every service on one world's servers, and asks whether each has every ride."""

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

import httpx

from tests.support.api import Api
from tests.support.books import MILLIMETRE, Books
from tests.support.looks import seen
from tests.support.receipts import Staff
from tests.support.rollup import is_complete
from tests.support.world import World, eventually

if TYPE_CHECKING:
    from pyspark import SparkContext

TOTALS = ("consumer0", "consumer1")
RIDES = ("5", "0.001", "99999.999", "12.5")
HOURS = "/hours?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z"
ANSWERS = ("/consumers", "/log", HOURS, "/rides/{first}", "/rides/{first}/receipt", "/readyz")


def at_work(world: World, staff: Staff) -> None:
    """Start all services, take rides, and wait until every service has and shows them."""
    api = Api(world)
    for name in TOTALS:
        world.service("consumers.totals", name)
    world.service("consumers.rollup")
    staff.service()
    world.service("streamer")
    eventually(api.ready, "the API with a session")
    for distance in RIDES:
        key = {"Idempotency-Key": distance}
        once, again = (asked(lambda: api.post(distance, **key)) for _ in range(2))  # noqa: B023
        assert (once.status_code, once.content) == (201, again.content)
        assert api.post(distance).status_code == 201
    assert world.truth[1] == 2 * sum(map(Decimal, RIDES))
    eventually(lambda: everybody_has_all(world, staff), "all rides everywhere")
    for path in ANSWERS:
        of_the_first = path.format(first=world.start + 1)
        answer = asked(lambda: api.client.get(of_the_first))  # noqa: B023
        assert answer.status_code == 200, answer.text
    api.client.close()
    assert seen(world).rollup.complete_to == world.truth[0]


def asked(ask: Callable[[], httpx.Response]) -> httpx.Response:
    """The answer, once it is another than "try later", as a client would ask again.

    The API says so after 0.9 s without a session, and on a busy machine a new one takes that long:
    it opens two more, to find out whether each of them keeps a backend of its own.
    """

    def answer() -> httpx.Response | None:
        said = ask()
        return said if said.status_code != 503 else None

    return eventually(answer, "an answer of the API")


def everybody_has_all(world: World, staff: Staff) -> bool:
    """Whether every service has every ride, exactly."""
    totals = {world.standing(name) for name in TOTALS}
    delivered = staff.outcomes() == world.value("SELECT count(*) FROM rides")
    return delivered and totals == {world.truth} and is_complete(world)


def is_reconciled(world: World, staff: Staff, spark: "SparkContext") -> bool:
    """Whether a total that is a millimetre off is found, and repaired."""
    books = Books(world, spark)
    books.tamper("consumer1", MILLIMETRE)
    result = books.run()
    assert [total.name for total in result.consumers if total.wrong] == ["consumer1"]
    return eventually(lambda: everybody_has_all(world, staff), "the repaired total")
