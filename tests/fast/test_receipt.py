"""Receipts: what is sent, and what an answer means."""

from datetime import UTC, datetime
from decimal import Decimal

from consumers.receipts.receipt import Receipt
from consumers.receipts.verdict import LONGEST_RETRY_AFTER, Kind, judge


def test_the_body_is_exact() -> None:
    body = b"""
        {"type":"ride.receipt","timestamp":"2026-11-22T08:30:00.000120Z","data":
        {"ride_id":521,"distance":539.837,"created_at":"2026-11-22T08:30:00.000120Z"}}
    """
    taken = datetime(2026, 11, 22, 8, 30, 0, 120, UTC)
    receipt = Receipt(521, Decimal("539.837"), taken, "receipt_1")
    assert receipt.body() == b"".join(line.strip() for line in body.splitlines())


STATUSES = {
    Kind.DELIVERED: [200, 201, 202, 204, 226, 299],
    Kind.RETRY: [0, 100, 103, 199, 408, 425, 429, 500, 502, 503, 504, 599],
    Kind.DECLINED: [300, 301, 302, 304, 307, 308, 400, 401, 403, 404, 405, 413, 418, 422, 499],
    Kind.REFUSED: [410],
}


def test_every_status_has_its_meaning() -> None:
    for kind, statuses in STATUSES.items():
        assert {status: judge(status).kind for status in statuses} == dict.fromkeys(statuses, kind)


def test_another_attempt_is_made_when_the_receiver_says_within_bounds() -> None:
    assert judge(503, retry_after=7).retry_after == 7
    assert judge(429, retry_after=10**9).retry_after == LONGEST_RETRY_AFTER
    assert judge(410, retry_after=7).retry_after == 0
