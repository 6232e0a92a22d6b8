"""A handler: what one kind of consumer makes of the records of its types."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, LiteralString

import psycopg
from psycopg import sql

from unified_log.database import why
from unified_log.errors import Overtaken, Unavailable
from unified_log.log import Record
from unified_log.readers.checkpoint import BEGIN_AT, Place
from unified_log.readers.gaps import Gap, Healed
from unified_log.readers.healing import BY_INDEX
from unified_log.readers.held_out import TAKE_BACK
from unified_log.readers.states import ADVICE, outliving, written

logger = logging.getLogger("consumer")

# Somebody who knows no handler, such as `unified_log.repair`, asks for a recount, or for a record
# that was held out to be tried again.
REPAIR_IS_DUE = """
    SELECT EXISTS (
        SELECT FROM current_checkpoints reader
        WHERE kind = %(kind)s AND name = %(name)s AND (recount OR EXISTS (
            SELECT FROM held_out_records held
            WHERE (held.kind, held.name) = (reader.kind, reader.name)
              AND retry AND held.position <= reader.position
        ))
    )
"""
# A checkpoint past `last_sent` was set by hand: what is still to come would be skipped.
TAKE_RECOUNT = """
    UPDATE checkpoints SET recount = false, resets_applied = resets_applied + 1,
        position = least(position, last_sent_id)
    FROM streamer_state WHERE kind = %s AND name = %s AND recount RETURNING position
"""
# The state belongs to the reader, by foreign keys ON DELETE CASCADE: it goes with its row, which is
# made anew. All that the checkpoint knows stays, but for the position.
START_OVER = """
    WITH back AS (
        UPDATE checkpoints SET position = cell_start(), furthest = greatest(furthest, position)
        WHERE kind = %(kind)s AND name = %(name)s
    ), was AS (DELETE FROM readers WHERE kind = %(kind)s AND name = %(name)s RETURNING *)
    INSERT INTO readers SELECT * FROM was
"""
BY_TABLE = """
    SELECT set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'on', true)
"""
FORGET = sql.SQL("DELETE FROM checkpoints WHERE kind = {} AND name = {}")


class Handler(ABC):
    """What the consumer `name` makes of its records. A `Reader` hands it each one once.

    For each batch the reader calls `prepare`, then, in one transaction on `connection`, `fence` and
    `take`. Records come in order, those of gaps among the others; only those that were held out
    come later. (A handler with a `heal` of its own gets the gaps first, then the rest.) What these
    methods write commits together with the checkpoint, or not at all. An error that one record is
    to blame for holds it out, after a `load` (`unified_log/readers/held_out.py`). Any other ends
    the reader and its handler; the next ones begin where the last commit left the checkpoint.
    """

    # What sort of consumer this is: a name is unique among those of its kind.
    KIND: ClassVar[str]
    # The types of records that it handles, each with the function that parses such a record: it
    # returns what `take` gets, or raises Invalid. Records of other types are passed over.
    TYPES: ClassVar[Mapping[str, Callable[[Record], Any]]]
    RECORD = "record"  # what a person calls one of them
    STATE = "state"  # and what is made of them
    # False for one that is never asked to recount: it has a hook of its own (`set_back_hooks`).
    RECOUNTS = True

    def __init__(self, connection: psycopg.Connection, name: str) -> None:
        self.connection = connection
        self.name = name

    def __str__(self) -> str:
        """Its state, for a person, in the line about each batch; by default nothing."""
        return ""

    def begin(self) -> None:  # noqa: B027 (many need none)
        """Create the state. In the transaction that creates the checkpoint."""

    def close(self, position: int) -> int | None:
        """Make the state what it was at the newest closed position, up to `position`; return that.

        For a consumer that begins, or starts over: `begin` has just made the state, and what
        follows that position is still to be taken. A position is closed once somebody has proven
        what all records up to there come to, and keeps that. By default there is none, and the
        first record is the next. In the transaction.
        """
        return None

    def create_state(self) -> None:
        """`begin`. Raises Unavailable, with advice, where the state outlives its checkpoint.

        A handler that overrides `recount`, if only to call this one's, may write to any table.
        """
        before = written(self.connection)
        try:
            self.begin()
        except psycopg.errors.UniqueViolation as error:
            raise Unavailable(
                f"{self.name} begins, and has a {self.STATE} already ({why(error)}). {ADVICE}"
            ) from None
        if not self.RECOUNTS or type(self).recount is not Handler.recount:
            return
        if lasting := outliving(self.connection, written(self.connection) - before):
            raise Unavailable(
                f"{self.name} begins with a {self.STATE} in {lasting}, which a recount may count"
                f" twice. {ADVICE}; or the handler needs a `recount` of its own"
            )

    def load(self, at: Place) -> None:  # noqa: B027
        """Load the state, for a checkpoint that stands `at` and is locked in this transaction.

        When the reader begins, after a repair, and after a batch that was refused: whatever the
        handler remembers may then be of the transaction that was rolled back. Raises Unavailable
        when the state was deleted: then nothing is counted, and the checkpoint does not move.
        """

    def read_state(self, select: LiteralString, at: Place) -> tuple[Any, ...]:
        """The row of the state that a SELECT with the name finds, for `load`.

        Raises Unavailable when it was deleted, since going on from 0 would be wrong for ever. It
        says how a person makes the consumer start anew.
        """
        row = self.connection.execute(select, [self.name]).fetchone()
        if row is None:
            forget = FORGET.format(self.KIND, self.name).as_string(self.connection)
            raise Unavailable(
                f"{self.name} has a checkpoint, at position {at.position}, but no {self.STATE};"
                f" this makes it start from the first {self.RECORD}: {forget}"
            )
        return row

    def write_state(self, update: LiteralString, *values: object) -> tuple[Any, ...]:
        """Run an UPDATE ... RETURNING of the state's row, with these values, then the name.

        Returns the row. Raises Overtaken when it is gone: then the checkpoint must not move; and
        Unavailable where there are more, such as one of another kind.
        """
        found = self.connection.execute(update, [*values, self.name])
        row = found.fetchone()
        if row is None:
            raise Overtaken(f"the {self.STATE} of {self.name} is gone")
        if found.rowcount != 1:
            raise Unavailable(
                f"{found.rowcount} rows are the {self.STATE} of {self.name}: the UPDATE has to name"
                " the kind, too"
            )
        return row

    def remake_state(self, update: LiteralString, *values: object) -> tuple[Any, ...]:
        """`write_state`, in a transaction, from whole tables: in their order, not by an index."""
        self.connection.execute(BY_TABLE)
        row = self.write_state(update, *values)
        self.connection.execute(BY_INDEX)  # a plan that is made meanwhile may be kept
        return row

    def prepare(self, after: int, upto: int) -> int:
        """Do what may be repeated, for its records with `after < id <= upto`. In no transaction.

        This is for results that live elsewhere: a crash before the checkpoint moves repeats it.
        Returns up to which position it is done, above `after`; the checkpoint moves no further.
        """
        return upto

    def fence(self) -> None:  # noqa: B027
        """Raise Overtaken when another process has taken over. First in the transaction.

        Most need none: only one of two processes of the same name can move their checkpoint.
        """

    @property
    def heals_by_sql(self) -> bool:
        """Whether `heal` is the handler's own."""
        return type(self).heal is not Handler.heal

    def heal(self, gap: Gap) -> Healed | None:
        """Take in the records of a gap by SQL of the handler's own. In the transaction.

        Only for a handler that overrides it; for all others, records come from the view
        `log_records`, a page at a time, and `take` gets them. What else is in the gap other
        handlers heal. The checkpoint is locked, and moves afterwards. Returns what was in the gap,
        which is counted with the checkpoint, or None if it was healed before.
        """
        raise NotImplementedError

    @abstractmethod
    def take(self, records: Sequence[Any]) -> None:
        """Take in new records, as TYPES parses them; also without any. In the transaction.

        The checkpoint has moved. Raises Overtaken when the state is gone: the checkpoint must not
        move without it.
        """

    def recount(self, upto: int) -> None:
        """Make the state anew, up to the position at which the checkpoint stands, which is locked.

        By default the state is forgotten, and the position set back to the start, or to what
        `close` returns: what follows heals, a page at a time. A handler whose state does not refer
        to its checkpoint by a foreign key ON DELETE CASCADE overrides this; so does one that makes
        it anew faster, by SQL.
        """
        self.connection.execute(START_OVER, {"kind": self.KIND, "name": self.name})
        self.create_state()
        if (closed := self.close(upto)) is not None:
            self.connection.execute(BEGIN_AT, [closed, self.KIND, self.name])
        logger.warning("%s starts over: it was asked for a recount", self.name)

    def ask_for_repair(self) -> psycopg.Cursor | None:
        """Ask, in each round, whether a repair is due: the answer is one row of one column.

        In no transaction. The cursor is returned unread: the question travels to the server
        together with the reader's own. None means that there is never a repair. By default, this
        asks for recounts and retries.
        """
        return self.connection.execute(REPAIR_IS_DUE, {"kind": self.KIND, "name": self.name})

    def repair(self) -> object:
        """Do what was asked for; returns what to report of it. In a transaction of its own.

        The checkpoint is locked in it. Afterwards, both it and the state are loaded anew. A state
        that was made anew lacks none of the records that were held out.
        """
        due = self.connection.execute(TAKE_RECOUNT, [self.KIND, self.name]).fetchone()
        if due:
            self.recount(*due)
            self.connection.execute(TAKE_BACK, [self.KIND, self.name])
        return due
