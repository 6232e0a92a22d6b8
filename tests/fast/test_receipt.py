"""Receipts: what is sent, and what an answer means."""

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from consumers.receipts.receipt import Receipt
from consumers.receipts.verdict import LONGEST_RETRY_AFTER, Kind, Verdict, judge

TAKEN = datetime(2026, 11, 22, 8, 30, 0, 120, UTC)


def test_the_body_is_exact_and_the_same_in_every_time_zone() -> None:
    body = b"""
        {"type":"ride.receipt","timestamp":"2026-11-22T08:30:00.000120Z","data":
        {"ride_id":521,"distance":539.837,"created_at":"2026-11-22T08:30:00.000120Z"}}
    """
    expected = b"".join(line.strip() for line in body.splitlines())
    for zone in (UTC, timezone(timedelta(hours=5, minutes=30))):
        receipt = Receipt(521, Decimal("539.837"), TAKEN.astimezone(zone), "receipt_1")
        assert receipt.body() == expected


@pytest.mark.parametrize("metres", ["0.001", "999999999.999", "1E+3", "5.000", "0.1"])
def test_a_distance_keeps_every_digit(metres: str) -> None:
    body = Receipt(1, Decimal(metres), TAKEN, "receipt_1").body()
    distance = json.loads(body, parse_float=str, parse_int=str)["data"]["distance"]
    assert Decimal(distance) == Decimal(metres)
    assert "E" not in distance


STATUSES = {
    Kind.DELIVERED: [200, 201, 202, 204, 226, 299],
    Kind.RETRY: [0, 100, 103, 199, 408, 425, 429, 500, 502, 503, 504, 599],
    Kind.REFUSED: [300, 301, 302, 304, 307, 308, 400, 401, 403, 404, 405, 410, 413, 418, 422],
}


def test_every_status_has_its_meaning() -> None:
    for kind, statuses in STATUSES.items():
        assert {status: judge(status).kind for status in statuses} == dict.fromkeys(statuses, kind)


def test_another_attempt_is_made_when_the_receiver_says_within_bounds() -> None:
    assert judge(503, retry_after=7).retry_after == 7
    assert judge(429, retry_after=10**9).retry_after == LONGEST_RETRY_AFTER
    assert judge(503, retry_after=0).retry_after is None
    assert judge(503, retry_after=-5).retry_after is None
    assert judge(410, retry_after=7).retry_after is None


def test_a_reason_is_one_short_printable_line() -> None:
    told = b"\x00\x1b[31mno\r\n\xff\t such \xe2\x80\xae shop" + b"x" * 1000
    reason = judge(404, told).reason
    assert reason.startswith("status 404: [31mno \N{REPLACEMENT CHARACTER} such shopxxx")
    assert reason.isprintable()
    assert len(reason) == 200
    assert judge(404, b" \r\n") == Verdict(Kind.REFUSED, "status 404")
    assert judge(301, redirect="https://b/").reason == "status 301 to https://b/"
