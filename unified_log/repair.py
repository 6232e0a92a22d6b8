"""`python -m unified_log.repair`: gets stranded records (those staged too late to be sent) counted.

    python -m unified_log.repair
    python -m unified_log.repair --gone N
    python -m unified_log.repair --from POSITION

The log can't take a record at or below `last_sent` any more: it is in order, and every reader may
be past it. There is no such record unless numbers were drawn out of order (the sequence's settings
were changed: `unified_log.streamer.checks`) or rows were staged by hand. The leader warns of them.

First it revokes every log entry up to `last_sent`, so that whoever reads there later, even a
consumer that has yet to start, sees a gap and heals it from the table of its records. Then it takes
the records out of the outbox, and asks every consumer for a recount: the consumer itself makes its
state anew from that table, up to where it stands by then. So every state ends up exact. Whatever
else must look again has a hook (`set_back_hooks`), which is told the lowest of these records. Only
readers that have none have to be told of them: the log will never contain them.

It refuses where a record was sent before, and staged once more: nothing tells which of them it is.
Nor does anything tell that from rows that are gone: whoever has deleted N of them on purpose says
so by `--gone N`. N is of all that were ever deleted, not of those since the last repair.

Rows that were inserted without records, and on which the next leader would stop, it leaves out of
the log; readers heal them from their tables. Where the log has passed such rows, as the leader
warns, no gap shows them: `--from POSITION`, the first of them, has all read anew, as for stranded
records. A recount alone would leave out the readers that are still behind, or begin later.

A crash leaves behind, by the step at which it comes:

* before the log is revoked: nothing.
* after that: a gap that readers heal from the tables, and records that are still to be repaired.
* after the second transaction: nothing.

By `--from`, nothing but readers that count more than they need, until it is run again.

The fleet may keep running meanwhile.
"""

import argparse
import logging
import re

import psycopg

from unified_log import database, process, settings, terms
from unified_log.database import one_row
from unified_log.errors import Unavailable
from unified_log.streamer import checks, leaders_term
from unified_log.streamer.barrier import Barrier
from unified_log.words import count

logger = logging.getLogger("streamer")

POLL = 0.05  # seconds

TAKE_OUT = "DELETE FROM staged_log_records WHERE id <= %s RETURNING id"
# After the hooks: one of them may wait until a run that has asked for resets has committed, so that
# these recounts come after those resets.
ASK_FOR_RECOUNTS = """
    WITH asked AS (
        UPDATE checkpoints SET recount = true WHERE kind <> 'outside' AND recount IS NOT NULL
        RETURNING kind || ' ' || name AS reader
    )
    SELECT reader FROM asked ORDER BY reader
"""
HOOKS = "SELECT function::oid::regproc::text FROM set_back_hooks ORDER BY 1"

# At one moment: how many stranded records were sent before, since too few rows were not. Or as many
# rows are gone: some are perhaps known to be.
SENT_BEFORE = """
    SELECT (SELECT count(*) FROM staged_log_records WHERE id <= last_sent_id) + records_sent
        - (SELECT count(*) FROM log_records WHERE id > cell_start() AND id <= last_sent_id)
    FROM streamer_state
"""

# The records have left the outbox, so they count as sent: sent and staged records together are all
# of `log_records`. This comes last in its transaction, since the leader waits for the row.
COUNT_REPAIRED = "UPDATE streamer_state SET records_sent = records_sent + %s"


def repair(connection: psycopg.Connection, gone: int = 0) -> tuple[list[int], list[str]]:
    """Repair all stranded records; returns their ids, and the readers asked to recount.

    So many rows are known to be `gone`. Raises Unavailable while the sequence would only strand
    more, or where a stranded record was sent before, as whatever is staged twice; and
    psycopg.Error.
    """
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    checks.require_rising_sequence(connection)
    last_sent = terms.last_sent(connection)
    if not checks.stranded_warnings(connection, last_sent):
        return [], []
    if (number := one_row(connection.execute(SENT_BEFORE))[0]) > gone:
        raise Unavailable(_sent_before(number, number - gone))
    # First: a consumer that starts after this needs no recount.
    leaders_term.revoke(connection, last_sent)
    with connection.transaction():
        records = sorted(record for (record,) in connection.execute(TAKE_OUT, [last_sent]))
        if not records:
            return [], []
        named = _have_all_read_anew(connection, records[0])
        connection.execute(COUNT_REPAIRED, [len(records)])
        return records, named


def pass_unstaged(connection: psycopg.Connection, lowest: int, gone: int = 0) -> list[str]:
    """Have rows from `lowest` on counted that the log has passed; returns the readers asked.

    They count as sent, as those that are left out. So many others are known to be `gone`. Raises
    Unavailable where the log has not passed `lowest`, StateLost, and psycopg.Error.
    """
    last_sent = terms.last_sent(connection)
    start = one_row(connection.execute("SELECT cell_start()"))[0]
    if not start < lowest <= last_sent:
        raise Unavailable(f"the log has {start + 1} to {last_sent} behind it, and not {lowest}")
    leaders_term.revoke(connection, last_sent)
    with connection.transaction():
        named = _have_all_read_anew(connection, lowest)
        [sent_before] = one_row(connection.execute(SENT_BEFORE))
        connection.execute(COUNT_REPAIRED, [max(0, gone - sent_before)])
        return named


def _have_all_read_anew(connection: psycopg.Connection, lowest: int) -> list[str]:
    for (function,) in connection.execute(HOOKS).fetchall():
        connection.execute(f"SELECT {function}(%s)".encode(), [lowest])
    return [reader for (reader,) in connection.execute(ASK_FOR_RECOUNTS)]


def _sent_before(number: int, unknown: int) -> str:
    """`unknown` are those of the `number` of which nobody has said that their rows are gone."""
    return (
        f"{unknown} of the stranded records {'was' if unknown == 1 else 'were'} sent before, or"
        " there are as many rows too few: take out of staged_log_records whatever was staged"
        f" twice, or has no row; or, if {count(number, 'row')} {'was' if number == 1 else 'were'}"
        f" deleted on purpose, --gone {number}"
    )


def wait_for_writers(connection: psycopg.Connection, stop: process.Stop) -> int:
    """Wait until no open transaction can still commit a stranded record; logs who is waited for.

    Or until `stop`. Returns the position up to which that is so. Raises psycopg.Error.
    """
    barrier = Barrier(connection)
    settled = barrier.settled()
    while barrier.waiting and not stop.wait(POLL):
        settled = barrier.settled()
    return settled


def _number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise argparse.ArgumentTypeError(f"{text!r}: a number is expected")
    return int(text)


def main() -> None:
    """Repair once, and report what was done."""
    parser = process.Parser("python -m unified_log.repair", __doc__)
    parser.add_argument(
        "--gone", type=_number, default=0, metavar="N", help="so many rows are known to be gone"
    )
    parser.add_argument(
        "--from", type=_number, dest="lowest", metavar="POSITION",
        help="the first of the rows that the log has passed, since they were never staged",
    )  # fmt: skip
    given = parser.parse_args()
    config = settings.load()
    config.begin_logging()
    stop = process.Stop().on_signals()
    try:
        with database.connect(config.postgres_url, "repair") as connection:
            config.require_schema(connection)
            settled = wait_for_writers(connection, stop)
            if stop:
                raise SystemExit("not repaired: stopped")
            records, consumers = repair(connection, given.gone)
            if given.lowest is not None:
                named = pass_unstaged(connection, given.lowest, given.gone)
                consumers = sorted({*consumers, *named})
            left_out = leaders_term.leave_out(connection, settled)
    except (Unavailable, psycopg.Error) as reason:
        raise SystemExit(f"not repaired: {database.why(reason)}") from None
    if left_out:
        logger.info("rows without records, left out of the log: %d", left_out)
    if not records and given.lowest is None:
        if not left_out:
            logger.info("nothing to repair: no record is stranded")
        return
    if records:
        _tell(records)
    logger.info("asked for a recount: %s", ", ".join(consumers) or "no reader")


def _tell(records: list[int]) -> None:
    named = ", ".join(map(str, records[:10]))
    more = f" and {len(records) - 10} more" if len(records) > 10 else ""
    logger.info("repaired; the log will never contain these records: %s%s", named, more)


if __name__ == "__main__":
    main()
