"""What this project claims, each with the file that makes it true; `make docs` writes the ledger.

A test proves a claim by the mark `@pytest.mark.proves("its-name")`: the one that proves it best and
cheapest. `tests/fast/test_claims.py` says when the ledger does not balance. The most important come
first.
"""

from typing import NamedTuple


class Claim(NamedTuple):
    """One sentence that a reader may rely on."""

    guarantee: str
    mechanism: str  # the file
    statement: int  # of docs/guarantees.md: the one that it is a part of; 0 where it is none's
    again: str = ""  # what a second proof shows that the first does not


CLAIMS = {
    "staging-is-atomic": Claim(
        "A ride and its record commit together, or neither does.", "api/booking.py", 1
    ),
    "order": Claim(
        "The log is in the order of ride ids.",
        "streamer/barrier.py",
        2,
        again="So it is where a number is drawn between the barrier's two looks.",
    ),
    "order-of-kinds": Claim(
        "So are records of a kind whose table is still being made.", "streamer/barrier.py", 2
    ),
    "gap-noticed": Claim("What the log lacks is noticed.", "consumers/digest.py", 3),
    "gap-healed": Claim(
        "A gap is healed from the rides, whatever made it.", "consumers/totals/total.py", 5
    ),
    "counts-once": Claim("Every ride counts once.", "consumers/checkpoint.py", 4),
    "exact": Claim("Totals are exact: no sum rounds.", "rocket_rides/distance.py", 7),
    "true-entries": Claim(
        "Only what this database's streamer committed counts.", "consumers/belief.py", 10
    ),
    "minutes": Claim(
        "Every minute is right up to `complete_to`.", "consumers/rollup/indexer.py", 14
    ),
    "receipts": Claim(
        "Each receipt is delivered, or a dead letter, whichever worker dies.",
        "consumers/receipts/inbox.py",
        15,
    ),
    "repaired": Claim(
        "A wrong total is repaired, wherever its consumer stands.",
        "consumers/totals/reset.py",
        12,
    ),
    "chain": Claim("Each entry names the record before it.", "rocket_rides/log/stream.py", 3),
    "deleted-as-sent": Claim("Nothing is deleted unsent.", "streamer/drain.py", 4),
    "one-transaction": Claim("Total and checkpoint move together.", "consumers/reader.py", 4),
    "trimming": Claim("Trimming follows the slowest reader.", "streamer/trimming.py", 6),
    "cap": Claim("The log does not outgrow Redis.", "streamer/trimming.py", 6),
    "other-types": Claim(
        "A reader passes records of types that it does not handle, and misses none of its own.",
        "consumers/digest.py",
        4,
    ),
    "any-log": Claim(
        "Whatever the log holds, records and gaps are all rides, each once.",
        "consumers/digest.py",
        8,
    ),
    "durable": Claim("A setting that may lose commits is warned about.", "streamer/checks.py", 9),
    "no-record": Claim("What is no record stops nothing.", "consumers/digest.py", 10),
    "committed": Claim(
        "Nothing counts before the streamer has committed it.", "consumers/digest.py", 11
    ),
    "noticed": Claim(
        "A total that is wrong by a millimetre is found, while rides come in.",
        "analytics/cells.py",
        12,
    ),
    "minute-repaired": Claim(
        "A wrong minute is noticed and computed anew.", "analytics/proofs/rollup.py", 12
    ),
    "receipt-repaired": Claim(
        "A missing receipt is noticed and delivered.", "analytics/proofs/receipts.py", 12
    ),
    "night": Claim("A night reads each ride once.", "analytics/table.py", 12),
    "slow-client": Claim("A slow client is disconnected.", "api/slow_clients.py", 13),
    "marks-lost": Claim(
        "Minutes stay right when Redis loses the marks.", "consumers/rollup/dirty.py", 14
    ),
    "swept": Claim(
        "A ride that the log has lost gets its receipt.", "consumers/receipts/statements.py", 15
    ),
    "restored": Claim(
        "A restored database does not believe the terms that it lost.",
        "rocket_rides/terms.py",
        16,
    ),
    "owner": Claim("No warehouse is taken for another database's.", "analytics/ownership.py", 16),
    "counted": Claim(
        "A gap is counted once, in however many pieces it is healed.", "consumers/reader.py", 17
    ),
    "described": Claim("Every answer is as `/openapi.json` says.", "api/views.py", 0),
}
