"""What an attempt to deliver a receipt came to.

What the receiver answered decides, and only that:

* 2xx: it has the receipt.
* 408, 425, 429 and 5xx: it asks for another attempt. So do an answer that does not come in time, a
  connection that is lost, and an answer that is not HTTP: the receiver may have the receipt all the
  same, and tells the repetition by `webhook-id`.
* 410: refused. The receiver says itself that another attempt would end in the same way.
* Any other status from 300 on, redirects too: declined. Whether that is about the receipt, or about
  whatever comes, one answer does not tell: see `consumers.receipts.refusals`.
* Nobody took the request: no address, no connection, no TLS, or no certificate for this host. The
  receiver is away, for every receipt alike, and that says nothing against any of them.
"""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import NamedTuple

# Seconds. A receiver that asks for more is asked again after that many all the same.
LONGEST_RETRY_AFTER = 300.0
LONGEST_REASON = 200  # characters
TRY_AGAIN = frozenset({408, 425, 429})
GONE = 410
NOT_HTTP = "the answer is not HTTP"


class Kind(Enum):
    """What an attempt came to."""

    DELIVERED = "delivered"
    RETRY = "retry"
    AWAY = "away"
    DECLINED = "declined"  # never written down: `refusals` makes it one of the others
    REFUSED = "refused"
    # By SIGTERM: the receiver may have the receipt. Or the lease ran out: nothing was sent.
    STOPPED = "stopped"


class Verdict(NamedTuple):
    """What an attempt came to, why, and for how many seconds the receiver asked to be left alone.

    `reason` is one line of printable text, never empty.
    """

    kind: Kind
    reason: str
    retry_after: float = 0


def judge(status: int, body: bytes = b"", retry_after: float = 0) -> Verdict:
    """What an answer whose head is complete means. `body` is how its body begins."""
    if 200 <= status < 300:
        return Verdict(Kind.DELIVERED, f"status {status}")
    if status < 200:
        return Verdict(Kind.RETRY, NOT_HTTP)
    told = body.decode(errors="replace")
    reason = one_line(f"status {status}{': ' if told.strip() else ''}{told}")
    if status >= 500 or status in TRY_AGAIN:
        return Verdict(Kind.RETRY, reason, min(retry_after, LONGEST_RETRY_AFTER))
    return Verdict(Kind.REFUSED if status == GONE else Kind.DECLINED, reason)


def one_line(text: str) -> str:
    """What a stranger sent, for a log and a database: one line of printable characters."""
    shown = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(shown.split())[:LONGEST_REASON]


def seconds_of(retry_after: str) -> float:
    """What a Retry-After header asks for, in seconds; 0 where it asks for nothing sensible."""
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after[:10])
    try:
        moment = parsedate_to_datetime(retry_after)
    except (ValueError, OverflowError):
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
