"""Readers: whoever holds the log back, in this fleet or outside it.

Each has a row in `checkpoints`: a consumer of this project, or a program in any other language that
keeps its own row up to date. The log keeps what any of them has not read.
"""

import psycopg

from rocket_rides.log import START, as_numbers

CHECKPOINTS = "SELECT last_redis_id FROM checkpoints"


def slowest(connection: psycopg.Connection) -> str:
    """The id up to which every reader has read; the log's start while there is no reader."""
    return min((id_ for (id_,) in connection.execute(CHECKPOINTS)), key=as_numbers, default=START)
