"""Entries of the log, written by hand, and ratings."""

from typing import Any

RIDE = "ride.create"
# As the API does, in a statement of the tests' own: the ride's number, its stars.
RATE = """
    WITH rating AS (INSERT INTO ratings (ride_id, stars) VALUES (%s, %s) RETURNING *)
    INSERT INTO staged_log_records (id, type, data)
    SELECT id, 'rating.create', jsonb_build_object('id', id, 'ride_id', ride_id, 'stars', stars)
    FROM rating
"""


def fields(
    position: int | str, data: str | bytes, prev: int | str, term: str | bytes, type_: str = RIDE
) -> list[bytes]:
    """What an entry holds, in the order in which the streamer writes it."""
    named = {"id": str(position), "type": type_, "data": data, "prev": str(prev), "term": term}
    words = [word for pair in named.items() for word in pair]
    return [word if isinstance(word, bytes) else word.encode() for word in words]


def named(
    position: int | str, data: str | bytes, prev: int | str, term: str | bytes, type_: str = RIDE
) -> dict[Any, Any]:
    """The same as redis-py's `xadd` takes it."""
    words = fields(position, data, prev, term, type_)
    return dict(zip(words[::2], words[1::2], strict=True))
