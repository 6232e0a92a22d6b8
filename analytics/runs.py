"""The row of a run in `runs`: committed before it reads anything, and completed with its result.

So a run that found something is never forgotten, whether or not it could repair it. A run that died
leaves "running"; whoever holds the lock next knows that it is not, and writes "failed".
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

import msgspec
import psycopg

from analytics.findings import Finding
from analytics.freeze import FrozenReader
from unified_log.database import one_row
from unified_log.errors import in_one_line

LEFT_OVER = """
    UPDATE runs SET status = 'failed', ended_at = clock_timestamp(), reason = 'it died'
    WHERE status = 'running'
"""
BEGIN = "INSERT INTO runs DEFAULT VALUES RETURNING id, started_at"
FAIL = """
    UPDATE runs SET status = 'failed', ended_at = clock_timestamp(), reason = %s
    WHERE id = %s AND status = 'running'
"""
# Committed before the warehouse names the ledger: whatever happens in between, it is known here. So
# is what it testifies to, which may be less than before.
NOTE_LEDGER = """
    UPDATE runs SET ledgers = array_append(ledgers, %s), proven = %s WHERE id = %s
"""
COMPLETE = """
    UPDATE runs SET status = %(status)s, ended_at = clock_timestamp(), position = %(position)s,
        verdicts = %(verdicts)s, findings = %(findings)s, readers = %(readers)s,
        rides_reread = %(rides_reread)s, oldest_look = %(oldest_look)s,
        records_gone = %(records_gone)s, proven = %(proven)s
    WHERE id = %(id)s
"""
# A receipt, or a recount, may be under way for longer than the last run is ago. A run that has died
# since may have given the warehouse what Postgres alone says.
LAST_COMPLETED = """
    SELECT id, started_at, position, findings, readers, records_gone, (
        SELECT later.proven FROM runs later
        WHERE later.id = runs.id OR later.id > runs.id AND later.ledgers <> '{}'
        ORDER BY later.id DESC LIMIT 1
    )
    FROM runs
    WHERE status IN ('agreed', 'wrong', 'held')
    AND (%(ago)s::interval IS NULL OR started_at < now() - %(ago)s::interval)
    ORDER BY id DESC LIMIT 1
"""
# Those of the newest completed run that wrote one, and of runs that died since.
KNOWN_LEDGERS = """
    SELECT ledger FROM runs, unnest(ledgers) WITH ORDINALITY noted (ledger, place)
    WHERE id >= coalesce((
        SELECT max(id) FROM runs WHERE status IN ('agreed', 'wrong', 'held') AND ledgers <> '{}'
    ), 0) ORDER BY id, place
"""
# An approval is for the next run that completes, whatever that finds; so it is used once at most.
APPROVED = """
    SELECT run_id FROM approvals WHERE digest = %s AND run_id = (
        SELECT max(id) FROM runs WHERE status IN ('agreed', 'wrong', 'held')
    )
"""
USE = "UPDATE approvals SET used_by = %s WHERE run_id = %s"


class Past(msgspec.Struct, frozen=True):
    """A completed run. `position` is the one that it froze."""

    id: int
    started_at: datetime
    position: int
    findings: list[dict[str, Any]]
    readers: list[dict[str, Any]]
    records_gone: int
    proven: dict[str, int]  # how far a total, and a consumer of ratings, has ever agreed

    def positions(self) -> dict[tuple[str, str], int]:
        """Where each reader stood, by its kind and name."""
        return {(each["kind"], each["name"]): each["position"] for each in self.readers}


class Run:
    """This run's row."""

    def __init__(self, connection: psycopg.Connection, id_: int, started_at: datetime) -> None:
        self._connection = connection
        self.id = id_
        self.started_at = started_at

    def note_ledger(self, digest: str, proven: Mapping[str, int]) -> None:
        """Say that the warehouse may be about to name this ledger, and what is proven by it."""
        self._connection.execute(NOTE_LEDGER, [digest, _json(proven), self.id])

    def fail(self, reason: str) -> None:
        self._connection.execute(FAIL, [reason[:1000], self.id])

    def complete(
        self,
        status: str,
        position: int,
        verdicts: dict[str, str],
        findings: Sequence[Finding],
        readers: Sequence[FrozenReader],
        rides_reread: int,
        oldest_look: datetime | None,
        records_gone: int,
        proven: dict[str, int],
    ) -> None:
        """Write down how it ended, in the caller's transaction."""
        values = {
            "status": status,
            "position": position,
            "verdicts": _json(verdicts),
            "findings": _json([each.as_json() for each in findings]),
            "readers": _json(
                [{"kind": r.kind, "name": r.name, "position": r.position} for r in readers]
            ),
            "rides_reread": rides_reread,
            "oldest_look": oldest_look,
            "records_gone": records_gone,
            "proven": _json(proven),
            "id": self.id,
        }
        self._connection.execute(COMPLETE, values)


def _json(value: object) -> str:
    return msgspec.json.Encoder(decimal_format="number").encode(value).decode()


def begin_run(connection: psycopg.Connection) -> Run:
    """Commit the row of a run. Only for the holder of the lock."""
    connection.execute(LEFT_OVER)
    return Run(connection, *one_row(connection.execute(BEGIN)))


@contextmanager
def recorded(connection: psycopg.Connection, *, checking: bool) -> Iterator[Run | None]:
    """A run's row, which says why if the block fails; none for a run that only checks."""
    if checking:
        yield None
        return
    run = begin_run(connection)
    try:
        yield run
    except BaseException as error:
        with suppress(psycopg.Error):  # the next holder of the lock writes it
            run.fail(in_one_line(error))
        raise


def last_completed(connection: psycopg.Connection, ago: str | None = None) -> Past | None:
    """The last run that came to an end, or of those that began so long ago; None before that."""
    row = connection.execute(LAST_COMPLETED, {"ago": ago}).fetchone()
    return Past(*row) if row else None


def known_ledgers(connection: psycopg.Connection) -> list[str]:
    """The SHA-256 of each ledger that the warehouse may rightly name, the newest last."""
    return [ledger for (ledger,) in connection.execute(KNOWN_LEDGERS)]


def approved(connection: psycopg.Connection, digest: str) -> int | None:
    """The run whose findings a person has approved, if they are exactly these."""
    row = connection.execute(APPROVED, [digest]).fetchone() if digest else None
    return row[0] if row else None


def use_approval(connection: psycopg.Connection, approval: int, run: Run) -> None:
    """An approval is acted on once."""
    connection.execute(USE, [run.id, approval])
