"""What this project claims, each with the file that makes it true; `make docs` writes the ledger.

The test that proves a claim best, and at the least cost, has the mark
`@pytest.mark.proves("its-name")`. `tests/fast/test_claims.py` checks that no claim lacks a proof,
and no proof a claim. The most important claims come first.
"""

from typing import NamedTuple


class Claim(NamedTuple):
    """One sentence that a reader may rely on."""

    guarantee: str
    mechanism: str  # the file
    statement: int  # the one of docs/guarantees.md that it belongs to; 0 for none
    again: str = ""  # what a second proof shows that the first does not


CLAIMS = {
    "staging-is-atomic": Claim(
        "A ride and its record commit together, or neither does.", "api/booking.py", 1
    ),
    "order": Claim(
        "The log is in the order of positions.",
        "unified_log/streamer/barrier.py",
        2,
        again="Even ids drawn between the barrier's two looks keep that order.",
    ),
    "order-of-kinds": Claim(
        "Records whose table is still being made keep that order, too.",
        "unified_log/streamer/barrier.py",
        2,
    ),
    "gap-noticed": Claim(
        "A reader notices what the log has lost.", "unified_log/readers/digest.py", 3
    ),
    "gap-healed": Claim(
        "A gap heals from the rides, whatever made it.", "consumers/totals/total.py", 5
    ),
    "counts-once": Claim("Every ride counts once.", "unified_log/readers/checkpoint.py", 4),
    "exact": Claim("Totals are exact: no sum is rounded.", "rocket_rides/distance.py", 7),
    "true-entries": Claim(
        "Only entries committed by this database's streamer count.",
        "unified_log/readers/committed.py",
        10,
    ),
    "minutes": Claim(
        "Every minute is right up to `complete_to`.", "consumers/rollup/indexer.py", 14
    ),
    "receipts": Claim(
        "Each receipt is delivered or becomes a dead letter, whichever worker dies.",
        "consumers/receipts/inbox.py",
        15,
    ),
    "repaired": Claim(
        "A wrong total is repaired, wherever its consumer stands.",
        "consumers/totals/reset.py",
        12,
    ),
    "chain": Claim("Each entry names the record before it.", "unified_log/log/stream.py", 3),
    "deleted-as-sent": Claim("No record is deleted unsent.", "unified_log/streamer/drain.py", 4),
    "one-transaction": Claim(
        "Total and checkpoint move in one transaction.", "unified_log/readers/taking.py", 4
    ),
    "survives": Claim(
        "What breaks three naive outboxes does not break this one.",
        "unified_log/streamer/barrier.py",
        2,
    ),
    "deadlines": Claim(
        "Nothing waits for a frozen Postgres beyond its deadline.",
        "unified_log/deadline.py",
        13,
    ),
    "held-out": Claim(
        "A record that is refused is held out, and all others count.",
        "unified_log/readers/taking.py",
        13,
    ),
    "held-snapshot": Claim(
        "No batch costs more because somebody holds a snapshot.",
        "unified_log/readers/checkpoint.py",
        13,
    ),
    "outage": Claim("An outage holds nothing out.", "unified_log/readers/held_out.py", 13),
    "retried": Claim(
        "A record that was held out counts once, however often it is tried again.",
        "unified_log/readers/taking.py",
        4,
    ),
    "taken-back": Claim("A reset takes back what was held out.", "consumers/totals/reset.py", 12),
    "healed-in-pages": Claim(
        "A gap of any length heals a page at a time.", "unified_log/readers/reader.py", 5
    ),
    "recounts": Claim(
        "A recount makes the state anew, which fits its position at every moment.",
        "unified_log/readers/handler.py",
        4,
    ),
    "drawn": Claim(
        "No record is staged under a position that nobody has drawn.",
        "unified_log/schema/1_log.sql",
        2,
    ),
    "kinds": Claim(
        "Kinds of records that are added at once are all there.",
        "unified_log/schema/2_kinds.sql",
        5,
    ),
    "trimming": Claim(
        "Trimming follows the slowest reader.", "unified_log/streamer/trimming.py", 6
    ),
    "cap": Claim("The log does not outgrow Redis.", "unified_log/streamer/trimming.py", 6),
    "other-types": Claim(
        "A reader passes records of types that it does not handle, and misses none of its own.",
        "unified_log/readers/digest.py",
        4,
    ),
    "third-kind": Claim(
        "A kind of record that is added while the fleet runs counts exactly.",
        "unified_log/streamer/drain.py",
        4,
    ),
    "kinds-count": Claim(
        "With rides and ratings in one log, each reader counts its own, each once.",
        "consumers/ratings/stars.py",
        4,
    ),
    "rated-once": Claim("A ride is rated once, however often clients ask.", "api/rating.py", 1),
    "ratings-proved": Claim(
        "Spark proves the ratings, and a wrong sum is counted anew.",
        "analytics/proofs/ratings.py",
        12,
    ),
    "any-log": Claim(
        "Whatever the log holds, a reader takes each ride once.",
        "unified_log/readers/digest.py",
        8,
    ),
    "durable": Claim(
        "The streamer warns of a setting that may lose commits.",
        "unified_log/streamer/checks.py",
        9,
    ),
    "no-record": Claim(
        "An entry that is no record stops no reader.", "unified_log/readers/digest.py", 10
    ),
    "sentinel": Claim(
        "The log is on the primary that the Sentinels name, whoever else says that it is one.",
        "unified_log/log/sentinels.py",
        5,
    ),
    "committed": Claim(
        "Nothing counts before the streamer has committed it.", "unified_log/readers/digest.py", 11
    ),
    "noticed": Claim(
        "A total that is a millimetre off is found while rides come in.",
        "analytics/pieces.py",
        12,
    ),
    "witnesses": Claim(
        "No two of Postgres, the warehouse, its ledger and the totals are overruled by one.",
        "analytics/votes.py",
        12,
    ),
    "second-witness": Claim(
        "A total is reset only where somebody beside Postgres says so.", "analytics/votes.py", 12
    ),
    "rides-held": Claim(
        "Rides that were changed by hand are named, and nothing is repaired by them.",
        "analytics/judgement.py",
        12,
    ),
    "approved": Claim("A person's approval is for exactly what was held.", "analytics/runs.py", 12),
    "ledger": Claim("A ledger that no run has written is not used.", "analytics/evidence.py", 12),
    "other-writers": Claim(
        "No run builds on what another writer commits meanwhile.", "analytics/table.py", 12
    ),
    "missed": Claim(
        "A reader that is gone, or was set back, does not agree.", "analytics/readers.py", 12
    ),
    "records-counted": Claim(
        "As many records as were sent are in their tables, or nothing is repaired.",
        "analytics/judgement.py",
        12,
    ),
    "policy": Claim(
        "A policy that hides rows ends the run.", "unified_log/session_settings.py", 12
    ),
    "plain": Claim("So does a view in a table's place.", "analytics/plain.py", 12),
    "rotation": Claim(
        "Each old ride is compared with Postgres within `REREAD_DAYS`.",
        "analytics/rotation.py",
        12,
    ),
    "minute-repaired": Claim(
        "A wrong minute is found and computed anew.", "analytics/proofs/rollup.py", 12
    ),
    "receipt-repaired": Claim(
        "A missing receipt is found and delivered.", "analytics/proofs/receipts.py", 12
    ),
    "closings": Claim(
        "A closing that is not what its rides add up to is named and held, and never repaired.",
        "analytics/balances.py",
        12,
    ),
    "closings-shorten": Claim(
        "A new total begins at the newest closing: it reads no ride that is closed.",
        "consumers/totals/closing.py",
        7,
    ),
    "night": Claim("The warehouse has each ride once.", "analytics/table.py", 12),
    "cells-once": Claim("A total of all cells counts each once.", "cells/total.py", 7),
    "slow-client": Claim("A slow client is disconnected.", "api/slow_clients.py", 13),
    "marks-lost": Claim(
        "Minutes stay right when Redis forgets which are dirty.",
        "consumers/rollup/ick.lua",
        14,
        again="Even if what comes back is older, and has as many.",
    ),
    "marked-meanwhile": Claim(
        "A minute that is marked while it is computed is computed again.",
        "consumers/rollup/ick.lua",
        14,
    ),
    "swept": Claim(
        "A ride that the log lost still gets its receipt.", "consumers/receipts/statements.py", 15
    ),
    "restored": Claim(
        "Entries of terms that a restore undid do not count.",
        "unified_log/terms.py",
        16,
    ),
    "owner": Claim(
        "The nightly job refuses another database's warehouse.", "analytics/ownership.py", 16
    ),
    "anywhere": Claim(
        "Of runs that commit to one warehouse at once, in a folder or an object store, one does.",
        "analytics/table.py",
        16,
    ),
    "counted": Claim(
        "A gap is counted once, in however many pieces it is healed.",
        "unified_log/readers/reader.py",
        17,
    ),
    "slots-move": Claim(
        "Across all cells, a key takes one ride, even while its slot moves.",
        "cells/router/keys.py",
        0,
    ),
    "trace": Claim(
        "A ride's receipt belongs to the trace in which the ride was asked for.",
        "unified_log/tracing.py",
        0,
    ),
    "cell": Claim(
        "No two cells give a record the same id.",
        "unified_log/schema/1_log.sql",
        0,
    ),
    "compatible-schemas": Claim(
        "A process goes on beside a newer schema, as long as that serves it.",
        "unified_log/schema/serving.py",
        0,
    ),
    "mechanism": Claim(
        "The mechanism imports nothing of the application.", "unified_log/spans.py", 0
    ),
    "feed": Claim(
        "`GET /log` has each settled record once, in order, and nothing else.", "api/feed.py", 0
    ),
    "described": Claim("Every answer matches `/openapi.json`.", "api/views.py", 0),
    "grows": Claim("A payload only grows.", "lab/contracts/growth.py", 0),
    "few-rights": Claim(
        "Each process may change only what it is there to change.", "migrations/rights.sql", 0
    ),
}
