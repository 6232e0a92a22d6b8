"""The ratings of a night: Spark finds a consumer that is off by one star, and has it recount."""

from contextlib import AbstractContextManager, nullcontext

import pytest

from consumers.ratings.stars import Stars
from tests.support.books import Books
from tests.support.entries import RATE
from tests.support.world import drain
from unified_log.readers.reader import Reader

# A consumer of a kind that somebody has added.
TIPS = "INSERT INTO checkpoints (kind, name, types) VALUES ('tips', 'tips0', '{tip.create}')"


@pytest.mark.proves("ratings-proved")
def test_a_star_too_many_is_found_and_counted_anew(books: Books) -> None:
    """Each consumer is judged at its own position: one is behind, one is caught up and wrong."""
    world = books.world
    behind, wrong = (
        Reader(world.log(), Stars(world.connect(), name)) for name in ("behind", "wrong")
    )
    rides = books.world.send(1, 2, 3)
    for readers, stars in (([behind, wrong], [5]), ([wrong], [3, 1])):
        for ride in rides[: len(stars)]:
            world.connection.execute(RATE, [ride, stars.pop()])
            rides.remove(ride)
        drain(world.streamer())
        for reader in readers:
            reader.run_once()
    right = books.run()
    assert right.ratings is not None
    assert [(each.ratings, each.stars) for each in right.ratings.consumers] == [(1, 5), (3, 9)]
    assert right.agrees

    world.connection.execute("UPDATE rating_sums SET stars = stars + 1 WHERE name = 'wrong'")
    checked = books.run(check=True)
    assert not checked.agrees
    assert world.value("SELECT count(*) FROM checkpoints WHERE recount") == 0
    found = books.run()
    assert found.ratings is not None
    [consumer] = found.ratings.wrong
    assert (consumer.name, consumer.stars, consumer.exact_stars) == ("wrong", 10, 9)
    assert found.requested
    wrong.run_once()
    behind.run_once()
    assert (wrong.handler.ratings, wrong.handler.stars) == (3, 9)
    world.connection.execute(TIPS)
    last = books.run()
    assert last.agrees
    assert last.notes == ["No proof reads tip.create: its consumers are compared with nothing."]


def test_a_consumer_that_goes_on_while_a_run_reads_is_right(books: Books) -> None:
    """It stands past what the run has frozen, by the time that its ratings are added up."""
    world = books.world
    first, second = world.send(1, 2)
    consumer = Reader(world.log(), Stars(world.connect(), "ratings0"))

    def rate(ride: int) -> None:
        world.connection.execute(RATE, [ride, 5])
        drain(world.streamer())
        consumer.run_once()

    def shown(stage: str) -> AbstractContextManager[object]:
        if stage == "Extracting new rides":
            rate(second)
        return nullcontext()

    rate(first)
    met = books.job(shown).run_once()
    assert met.ratings is not None
    assert [(each.ratings, each.exact_ratings) for each in met.ratings.consumers] == [(2, 2)]
    assert met.ratings.agrees
    again = books.run()
    assert again.ratings is not None
    assert again.ratings.agrees
