"""Terms: which entries of the log come from this database.

Anyone may write to a Redis stream: a second fleet with the same STREAM_NAME, a copy of this
database, or this database's own past, if Postgres was restored to an earlier time or failed over
with loss, and now draws numbers again that the log already carries.

So each leader draws a random term, its fencing token. Before it sends anything it commits the term
to `terms`, with the current `last_sent` as `after`; and it puts the term into every entry. A reader
believes an entry if `after < id <= upto`, where `upto` is the next term's `after`, or for the
newest term the last number drawn. (Not `last_sent`: an entry between the two is ours and about to
be committed, so a reader holds it until then.) With the terms a1 from 0 on and b2 from 500 on, an
entry with id 510 under a1 is past a1's end: nobody believes it.

If nothing is committed under a term, the next one has the same `after`. It replaces the row, and
keeps the other's name in `replaced`: entries under that name are known to be ours, and none of them
was committed. So `after` orders the terms strictly.

A restored database does not know the terms of the history that it lost: their entries are foreign.
The last term that it knows ends where its next leader begins: later entries under it are past its
end.

An entry without a term is from before terms existed: it is believed up to the first term's `after`.

Limits: a reader that ignores terms is not protected; entries without a term are believed from
anyone, up to the first `after`; and whoever can read and write the stream can forge entries. The
table grows by one row for each leader that commits something. A reader loads all of it when the
newest term changes: ten thousand rows take about 0.03 s.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import psycopg

from unified_log.errors import Unavailable

TERM_BYTES = 8  # random ones; hexadecimal digits in the log and in Postgres
NO_TERM = b""  # of entries that are older than the first term

ALL = """
    SELECT coalesce(json_agg(json_build_array(after, term, replaced) ORDER BY after), '[]')
    FROM terms
"""

LAST_SENT = "SELECT last_sent_id FROM streamer_state ORDER BY version DESC LIMIT 1"
RESTORE_STATE = (
    "WITH gone AS (DELETE FROM streamer_state RETURNING version)"
    " INSERT INTO streamer_state (version, last_sent_id, records_sent)"
    " SELECT coalesce((SELECT max(version) + 1 FROM gone), 0), greatest("
    "(SELECT id FROM log_records records WHERE NOT EXISTS (SELECT FROM staged_log_records staged"
    " WHERE staged.id = records.id) ORDER BY id DESC LIMIT 1), (SELECT max(after) FROM terms),"
    " cell_start()),"
    " greatest((SELECT count(*) FROM log_records) - (SELECT count(*) FROM staged_log_records), 0)"
)


class StateLost(Unavailable):
    """The row of streamer_state is gone, or has less than what was sent."""

    def __init__(self, what: str = "is empty") -> None:
        super().__init__(
            f"streamer_state {what}. This restores it from what is still staged: {RESTORE_STATE}"
        )


class Term(NamedTuple):
    """One leader's time: what it sends under `name` is believed for ids above `after`."""

    name: str
    after: int


class Range(NamedTuple):
    """The records of a term: `after < id <= upto`."""

    after: int
    upto: int


def last_sent(connection: psycopg.Connection) -> int:
    """The id of the last record that was sent and committed. Raises StateLost."""
    row = connection.execute(LAST_SENT).fetchone()
    if row is None:
        raise StateLost
    return int(row[0])


class Terms:
    """All terms of this database, as one reader knows them."""

    def __init__(self) -> None:
        self.newest: str | None = ""  # no term has this name: ask for all
        self._after = 0
        self._ranges: dict[bytes, Range] = {}

    def update(self, rows: list[Any] | None, last: int) -> Mapping[bytes, Range]:
        """The records to believe under each term; `rows` is the result of ALL, or None.

        Under the newest term they go up to `last`, the last number drawn.
        """
        if rows is not None:
            self._learn(rows)
        newest = (self.newest or "").encode()
        self._ranges[newest] = Range(self._after, last)
        return self._ranges

    def _learn(self, rows: list[Any]) -> None:
        self._ranges = {}
        self.newest, self._after, name = None, 0, NO_TERM
        # A term ends where the next begins, so each row closes the range of the one before.
        for after, term, replaced in rows:
            self._ranges[name] = Range(self._after, after)
            self._ranges |= {other.encode(): Range(after, after) for other in replaced}
            self.newest, self._after, name = term, after, term.encode()
