"""Records that are held out: what a handler, or Postgres on its behalf, refuses.

A record that can't be counted must not stop all others. So it is held out: the checkpoint passes
it, and a row in `held_out_records` says that the state lacks it, both in one transaction. A person
then has it tried again, once the reason is gone, or drops it (`unified_log/held_out.py`).

What holds a record out is told by SQLSTATE, and never by an outage:

* class 22, a value that does not fit; 23, a constraint; 44, a view's check option; 20, 21 and
  27, what a statement or a trigger can't go on with; P0, what a trigger or a function raised, and
  codes of the shop's own; 54, a limit of the server; what psycopg can't send; `RecordRefused`, by
  which a handler itself refuses.
* Anything else, such as a lost connection, a deadlock, a full disk, a missing table or right, or an
  error of Python's, says nothing about the record, and ends the session as ever.

The reader finds the record by halving the batch, each half in a transaction of its own. (A
savepoint would pass a deferred constraint that fails at the commit, and would not undo what the
handler remembers.) What came from Redis is taken from the view once more, before it is held out.

Where everything is refused, the records are not to blame: after MOST_IN_A_ROW refusals in a row, or
with MOST_UNDECIDED records that nobody has decided about, the reader stands still, and says why. It
goes on once a record counts, or once enough of them were dropped or tried again with success.
"""

import re
from typing import Any, NamedTuple

import psycopg

from unified_log.database import in_its_letters
from unified_log.errors import RecordRefused, Unavailable, in_one_line

MOST_IN_A_ROW = 10
MOST_UNDECIDED = 100

CLASSES = ("20", "21", "22", "23", "27", "44", "54")
# What PL/pgSQL raises (P0), what the standard has for applications (45), and what a shop makes up:
# of the rest of these letters and digits, Postgres has F0, HV and XX, and once had 72.
OWN = re.compile("45|(?!72|F0|HV|XX)[6-9A-Z]")

# Of those in a row, no more than still wait for a decision.
COUNTS = """
    SELECT least(refusals_in_a_row, undecided), undecided
    FROM current_checkpoints reader CROSS JOIN LATERAL (
        SELECT count(*) AS undecided FROM held_out_records held
        WHERE (held.kind, held.name) = (reader.kind, reader.name) AND dropped_at IS NULL
    ) held
    WHERE kind = %s AND name = %s
"""
# There is none of this position already, unless somebody has put it there.
KEEP = """
    INSERT INTO held_out_records AS known (kind, name, position, type, sqlstate, reason)
    VALUES (%s, %s, %s, %s, %s, %s)
    ON CONFLICT (kind, name, position) DO UPDATE SET sqlstate = excluded.sqlstate,
        reason = excluded.reason, attempts = known.attempts + 1, retry = false, dropped_at = NULL
"""
# Past its checkpoint a reader will meet the record anyway.
TO_RETRY = """
    SELECT held.position, held.type
    FROM held_out_records held JOIN current_checkpoints reader USING (kind, name)
    WHERE kind = %s AND name = %s AND retry AND held.position <= reader.position
    ORDER BY held.position LIMIT 1
"""
COUNTED = """
    DELETE FROM held_out_records WHERE kind = %s AND name = %s AND position = %s AND retry
"""
REFUSED_AGAIN = """
    UPDATE held_out_records
    SET retry = false, attempts = attempts + 1, sqlstate = %s, reason = %s
    WHERE kind = %s AND name = %s AND position = %s
"""
# All of a consumer's: its state was made anew, and lacks none of them.
TAKE_BACK = "DELETE FROM held_out_records WHERE kind = %s AND name = %s"


class Refusal(NamedTuple):
    """Why a record is held out: what Postgres said, with its SQLSTATE, or the handler."""

    reason: str
    sqlstate: str | None = None


class HeldOut(NamedTuple):
    """A record that was held out, or whose retry was refused."""

    position: int
    type: str
    refusal: Refusal


class Retried(NamedTuple):
    """A record that was tried again; `refusal` is None where it counts now."""

    position: int
    type: str
    refusal: Refusal | None


class StandsStill(Unavailable):
    """Too much is refused for the records to be to blame: nothing is held out any more."""


def refusal(error: Exception) -> Refusal | None:
    """Why the record is to blame for this error; None where it says nothing about the record."""
    if isinstance(error, RecordRefused):
        return Refusal(in_one_line(error))
    if isinstance(error, psycopg.Error):
        state = error.sqlstate
        if state is None and isinstance(error, psycopg.DataError):  # it can't even be sent
            return Refusal(in_one_line(error))
        if state and (state[:2] in CLASSES or OWN.match(state)):
            return Refusal(in_one_line(Exception(error.diag.message_primary or error)), state)
    return None


class HeldOutRecords:
    """Those of one consumer. Methods are for the caller's transaction, and raise psycopg.Error."""

    def __init__(self, connection: "psycopg.Connection[Any]", kind: str, name: str) -> None:
        self._connection = connection
        self._who = kind, name

    def require_few(self, found: HeldOut) -> None:
        """Raise StandsStill if it would be one too many."""
        # No row: the checkpoint is gone, and moving it says so.
        in_a_row, undecided = self._connection.execute(COUNTS, self._who).fetchone() or (0, 0)
        if in_a_row >= MOST_IN_A_ROW:
            why = f"{in_a_row} records in a row were refused"
        elif undecided >= MOST_UNDECIDED:
            why = f"{undecided} records are held out, and nobody has decided about them"
        else:
            return
        raise StandsStill(
            f"{self._who[1]} stands still: {why}; the next one is {found.type} {found.position}:"
            f" {found.refusal.reason}"
        )

    def keep(self, found: HeldOut) -> None:
        """Note that the state lacks it: in the transaction in which the checkpoint passes it."""
        reason, sqlstate = found.refusal
        reason = in_its_letters(self._connection, reason)
        values = [*self._who, found.position, found.type, sqlstate, reason]
        self._connection.execute(KEEP, values)

    def to_retry(self) -> tuple[int, str] | None:
        """The position and the type of the lowest one that somebody wants to be tried again."""
        return self._connection.execute(TO_RETRY, self._who).fetchone()

    def counted(self, position: int) -> bool:
        """The state has it now: in the transaction that counts it.

        Returns False when nobody wants it to be tried again any more: then it must not count.
        """
        return self._connection.execute(COUNTED, [*self._who, position]).rowcount == 1

    def refused_again(self, position: int, why: Refusal) -> None:
        """Note what became of a retry."""
        reason = in_its_letters(self._connection, why.reason)
        self._connection.execute(REFUSED_AGAIN, [why.sqlstate, reason, *self._who, position])
