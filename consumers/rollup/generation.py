"""A generation: one lead's right to move the rollup's checkpoint and to say how far it is complete.

A generation is a fencing token, as a streamer's term is. Whoever takes the lead draws one at
random. In one transaction it is written to `rollup_state` and the checkpoint goes back to
`complete_to`: the rides past it may have been marked in an Ick that is lost. From then on an
earlier leader can change nothing, however late it wakes up, because each of its transactions first
locks the row, and finds another generation in it.

The generation also names the lead's Ick. The previous leader's, which the column `ick` names, is
deleted first, and no other is touched: those of another database, or of a past that this one has
lost, may be in the same Redis.
"""

import secrets

import psycopg

from unified_log.database import one_row
from unified_log.errors import Overtaken
from unified_log.readers.checkpoint import Checkpoint

KIND = NAME = "rollup"  # of the checkpoint

MAKE = "INSERT INTO rollup_state SELECT WHERE NOT EXISTS (SELECT FROM rollup_state)"
OF_BEFORE = "SELECT ick FROM rollup_state"
DRAW = """
    UPDATE rollup_state SET generation = %(new)s, ick = %(new)s WHERE ick = %(before)s
    RETURNING complete_to
"""
# A lock, not a condition of the UPDATE that follows: that UPDATE, if it had waited for a successor,
# would see the new version of its row, but still the old rollup_state.
HOLD = """
    SELECT FROM rollup_state
    WHERE version >= (SELECT version FROM rollup_state ORDER BY version DESC LIMIT 1)
      AND generation = %s FOR SHARE
"""
IS_OVERTAKEN = """
    SELECT NOT EXISTS (
        SELECT FROM (SELECT generation FROM rollup_state ORDER BY version DESC LIMIT 1) newest
        WHERE generation = %s
    )
"""
# A minute that was set aside is not right for its rides: `complete_to` stays below them.
COMPLETE = """
    UPDATE rollup_state SET version = version + 1, complete_to = greatest(complete_to, least(
        %s, (SELECT min(lowest_ride_id) - 1 FROM set_aside_minutes)
    ))
    WHERE version >= (SELECT version FROM rollup_state ORDER BY version DESC LIMIT 1)
      AND generation = %s RETURNING complete_to
"""


def of_before(connection: psycopg.Connection) -> str:
    """The generation whose Ick may still be in Redis; empty if there is none."""
    connection.execute(MAKE)
    [(before,)] = connection.execute(OF_BEFORE)
    return str(before)


class Generation:
    """A new one, drawn on `connection` by the session that has the lead. Raises Overtaken.

    Each loop asks it on a connection of its own.
    """

    def __init__(self, connection: psycopg.Connection, checkpoint: Checkpoint, before: str) -> None:
        self.name = secrets.token_hex(8)
        with connection.transaction():
            row = connection.execute(DRAW, {"new": self.name, "before": before}).fetchone()
            if row is None:
                raise overtaken()
            [self.complete_to] = row
            checkpoint.make()
            # Up to there, each ride was read or healed under some lead; no gap counts it again.
            self.met_upto = checkpoint.go_back(self.complete_to)

    def hold(self, connection: psycopg.Connection) -> None:
        """Keep others from drawing a new one until this transaction ends. Raises Overtaken."""
        if connection.execute(HOLD, [self.name]).rowcount != 1:
            raise overtaken()

    def check(self, connection: psycopg.Connection) -> None:
        """Raise Overtaken if another has begun: while no ride comes, nothing else tells us."""
        if one_row(connection.execute(IS_OVERTAKEN, [self.name]))[0]:
            raise overtaken()

    def complete(self, connection: psycopg.Connection, upto: int) -> None:
        """Note that every minute is right for the rides up to there, except those set aside.

        Raises Overtaken.
        """
        row = connection.execute(COMPLETE, [upto, self.name]).fetchone()
        if row is None:
            raise overtaken()
        [self.complete_to] = row


def overtaken() -> Overtaken:
    return Overtaken("another process, or a repair, has begun a new generation of the rollup")
