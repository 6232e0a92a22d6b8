"""A checkpoint: where a reader stands in the log. Trimming stops there."""

from collections.abc import Iterable, Sequence
from typing import LiteralString, NamedTuple

import psycopg

from unified_log.database import one_row
from unified_log.errors import Overtaken
from unified_log.readers.committed import keep_malformed
from unified_log.readers.digest import Digest
from unified_log.readers.gaps import Healed, HealedSum

# One that is made anew is never at a version that a process may have loaded of the one before.
MAKE = """
    INSERT INTO checkpoints (kind, name, version)
    VALUES (%s, %s, extract(epoch FROM clock_timestamp()) * 1000000)
    ON CONFLICT DO NOTHING RETURNING name
"""
BEGIN_AT = "UPDATE checkpoints SET position = %s WHERE kind = %s AND name = %s"
# Records of a new type lie before its position: whoever handles more types than before recounts.
HANDLES = """
    UPDATE checkpoints
    SET types = %(types)s, recount = CASE WHEN %(recounts)s
        THEN coalesce(recount, false) OR (types <> '{}' AND NOT %(types)s::text[] <@ types) END
    WHERE kind = %(kind)s AND name = %(name)s
      AND (types <> %(types)s OR (recount IS NULL) = %(recounts)s)
"""
LOAD = """
    SELECT last_redis_id, position, furthest, types, version
    FROM checkpoints WHERE kind = %s AND name = %s
    ORDER BY version DESC LIMIT 1
"""
# It waits for who is moving it, and then locks what that has left (`version >=`).
LOCK = """
    SELECT FROM checkpoints WHERE kind = %(kind)s AND name = %(name)s AND version >= (
        SELECT version FROM checkpoints WHERE kind = %(kind)s AND name = %(name)s
        ORDER BY version DESC LIMIT 1
    ) FOR UPDATE
"""
# LOCK, for who changes the state where it stands: others who have loaded it can't move it then.
CHANGE = """
    UPDATE checkpoints SET version = version + 1
    WHERE kind = %(kind)s AND name = %(name)s AND version >= (
        SELECT version FROM checkpoints WHERE kind = %(kind)s AND name = %(name)s
        ORDER BY version DESC LIMIT 1
    )
"""
# Compare-and-set: it moves only from the version that was loaded, so that a second process of the
# same name can't count a batch too, nor write what it remembers over a retry or a repair; only from
# where the batch was read, since whoever sets it back by hand knows of no version; and only for who
# handles the types that were written down last, since an older process would pass what a newer one
# handles. What was met on the way is counted in the same statement.
MOVE = """
    UPDATE checkpoints SET version = version + 1,
        last_redis_id = %(redis_id)s, position = %(position)s,
        counted_at = CASE WHEN %(position)s > position THEN clock_timestamp() ELSE counted_at END,
        gaps_healed = gaps_healed + %(gaps)s,
        records_healed = records_healed + %(records)s,
        resends_skipped = resends_skipped + %(skipped)s,
        entries_malformed = entries_malformed + %(malformed)s,
        entries_ignored = entries_ignored + %(ignored)s,
        entries_passed = entries_passed + %(passed)s,
        refusals_in_a_row = %(held_out)s + CASE WHEN %(taken)s + %(records)s > 0 THEN 0
                                                ELSE refusals_in_a_row END
    WHERE kind = %(kind)s AND name = %(name)s AND version = %(from_version)s
      AND last_redis_id = %(from_redis_id)s AND position = %(from_position)s
      AND types = %(types)s
"""
ADD_CRASHES = """
    UPDATE checkpoints SET crashes_injected = crashes_injected + %s WHERE kind = %s AND name = %s
"""
GO_BACK = """
    UPDATE checkpoints SET furthest = greatest(furthest, position), position = %s
    WHERE kind = %s AND name = %s RETURNING furthest
"""


class Place(NamedTuple):
    """Where a reader stands: after an entry of the stream, and at a position of the records."""

    redis_id: str
    position: int


class Checkpoint:
    """The checkpoint `name` of a kind of readers.

    Each method is for the caller's transaction, and raises psycopg.Error. Its isolation level is
    READ COMMITTED: each statement sees what the one before it waited for.
    """

    def __init__(self, connection: psycopg.Connection, kind: str, name: str) -> None:
        self._connection = connection
        self._kind = kind
        self.name = name
        self.furthest = 0  # as it was loaded: up to there, all records were met before
        self._types: list[str] = []  # that its reader handles, in order
        self._version = 0  # as it was loaded, or moved

    def make(self) -> bool:
        """Create it, at the very beginning, unless it exists; returns whether it is new."""
        return self._connection.execute(MAKE, [self._kind, self.name]).fetchone() is not None

    def begin_at(self, position: int) -> None:
        """Have the one that was just created begin after this position."""
        self._connection.execute(BEGIN_AT, [position, self._kind, self.name])

    def handles(self, types: Iterable[str], *, recounts: bool) -> None:
        """Write down which types of records its reader handles, and whether it can recount them."""
        self._types = sorted(types)
        values = {
            "kind": self._kind,
            "name": self.name,
            "types": self._types,
            "recounts": recounts,
        }
        self._connection.execute(HANDLES, values)

    def load(self) -> Place:
        """Read it.

        Raises Overtaken when somebody has deleted it, or a process of this name handles other
        types.
        """
        row = self._connection.execute(LOAD, [self._kind, self.name]).fetchone()
        if row is None:
            raise self._gone()
        *place, furthest, types, version = row
        if types != self._types:
            raise Overtaken(f"another process of {self.name} handles other types of records")
        self.furthest, self._version = furthest, version
        return Place(*place)

    def lock(self) -> None:
        """Keep anyone else from moving or repairing it until this transaction ends.

        Raises Overtaken when it is gone, or was made anew while this waited for it.
        """
        self._keep(LOCK)

    def change(self) -> None:
        """`lock`, for who then loads it, and changes the state where it stands.

        No other process of this name can move it, until it has loaded the state anew.
        """
        self._keep(CHANGE)

    def go_back(self, position: int) -> int:
        """Set it back to a position; returns how far it ever was: up to there, all was met before.

        Its `last_redis_id` stays: records after `position` that are not sent again are a gap.
        """
        row = one_row(self._connection.execute(GO_BACK, [position, self._kind, self.name]))
        return int(row[0])

    def add_crashes(self, number: int) -> None:
        """Count injected crashes."""
        self._connection.execute(ADD_CRASHES, [number, self._kind, self.name])

    def move(
        self,
        before: Place,
        batch: Digest,
        healed: Sequence[Healed],
        taken: int,
        held_out: int = 0,
    ) -> Place:
        """Move it past a batch, keep its malformed entries, and count what it held and lacked.

        `taken` is how many records the handler takes, `held_out` how many it does not.
        Returns where it stands then. Raises Overtaken unless it stood at `before`, and `load` would
        not.
        """
        new = [
            keep_malformed(self._connection, self._kind, self.name, each)
            for each in batch.malformed
        ]
        to = Place(batch.last_redis_id, batch.position)
        values = {
            "kind": self._kind,
            "name": self.name,
            "redis_id": to.redis_id,
            "position": to.position,
            **HealedSum.of(healed)._asdict(),
            "skipped": batch.skipped,
            "malformed": sum(new),
            "ignored": batch.ignored.total,
            "passed": batch.passed,
            "taken": taken,
            "held_out": held_out,
            "from_redis_id": before.redis_id,
            "from_position": before.position,
            "from_version": self._version,
            "types": self._types,
        }
        if self._connection.execute(MOVE, values).rowcount != 1:
            raise Overtaken(
                f"another process, or somebody by hand, moved the checkpoint of {self.name}"
            )
        return to

    def moved(self) -> None:
        """What `move` did is committed."""
        self._version += 1

    def _keep(self, statement: LiteralString) -> None:
        who = {"kind": self._kind, "name": self.name}
        if self._connection.execute(statement, who).rowcount != 1:
            raise self._gone()

    def _gone(self) -> Overtaken:
        return Overtaken(f"the checkpoint of {self.name} is gone")
