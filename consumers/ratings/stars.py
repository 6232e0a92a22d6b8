"""The number of all ratings and the sum of their stars: the handler of `consumers.ratings`."""

import logging
from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec

from unified_log.database import one_row
from unified_log.log import Data, Position, Record, parse_data
from unified_log.readers.checkpoint import Place
from unified_log.readers.gaps import Gap, Healed
from unified_log.readers.handler import Handler
from unified_log.words import count

logger = logging.getLogger("consumer")

TYPE = "rating.create"
BEGIN = "INSERT INTO rating_sums (name) VALUES (%s)"
LOAD = "SELECT ratings, stars FROM rating_sums WHERE name = %s ORDER BY version DESC LIMIT 1"
ADD = """
    UPDATE rating_sums SET version = version + 1, ratings = ratings + %s, stars = stars + %s
    WHERE (name, version) = (
        SELECT name, version FROM rating_sums WHERE name = %s ORDER BY version DESC LIMIT 1
    ) RETURNING ratings, stars
"""
IN_GAP = "SELECT count(*), coalesce(sum(stars), 0) FROM ratings WHERE id > %s AND id <= %s"
RECOUNT = """
    UPDATE rating_sums SET (ratings, stars) = (
        SELECT count(*), coalesce(sum(stars), 0) FROM ratings WHERE id <= %s
    )
    WHERE name = %s RETURNING ratings, stars
"""


class Rating(Data, frozen=True, gc=False):
    """What a rider said of a ride."""

    ride_id: Annotated[Position, msgspec.Meta(description="The ride's `id`.", examples=[519])]
    stars: Annotated[
        int, msgspec.Meta(ge=1, le=5, description="From 1 to 5, the best.", examples=[5])
    ]


_decode = msgspec.json.Decoder(Rating).decode


def rating(record: Record) -> Rating:
    """The rating that a record of TYPE tells of. Raises Invalid when its data is not a rating's."""
    return parse_data(record, _decode, "rating")


class Stars(Handler):
    """How many ratings there are up to the checkpoint, and how many stars in all."""

    KIND = "ratings"
    TYPES: ClassVar = {TYPE: rating}
    RECORD = "rating"
    STATE = "sum"
    ratings: int
    stars: int

    def __str__(self) -> str:
        return f"{self.stars} stars in {count(self.ratings, 'rating')}"

    def begin(self) -> None:
        """Start from nothing."""
        self.connection.execute(BEGIN, [self.name])

    def load(self, at: Place) -> None:
        """Read them. Raises Unavailable when they are gone."""
        self.ratings, self.stars = self.read_state(LOAD, at)

    def heal(self, gap: Gap) -> Healed:
        """Add the ratings of a gap. Raises Overtaken when the sum is gone."""
        ratings, stars = one_row(self.connection.execute(IN_GAP, [gap.after, gap.upto]))
        self._add(ratings, stars)
        return Healed(gap, ratings)

    def take(self, records: Sequence[Rating]) -> None:
        """Add the ratings of a batch. Raises Overtaken when the sum is gone."""
        self._add(len(records), sum(record.stars for record in records))

    def recount(self, upto: int) -> None:
        """Count all ratings up to the checkpoint anew. Raises Overtaken when the sum is gone."""
        was = str(self)
        self.ratings, self.stars = self.remake_state(RECOUNT, upto)
        logger.warning("%s counted all ratings anew: %s, was %s", self.name, self, was)

    def _add(self, ratings: int, stars: int) -> None:
        self.ratings, self.stars = self.write_state(ADD, ratings, stars)
