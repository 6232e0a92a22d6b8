"""What chaos' judge knows of the log: which entries a reader may have read."""

import pytest

from lab.chaos.observer import Told
from lab.chaos.trace.log_book import UNREAD, LogBook
from lab.chaos.trace.recording import Struck
from lab.chaos.trace.replica import position
from unified_log.log import Record

COMMITTED = 10.0  # when the reader's commit was seen
ID = "1796037718612-716"
HERS = Told(ID, COMMITTED - 0.1, Record(1, b"ride.create", b'{"id": 1, "distance": 5}', 0))


@pytest.mark.parametrize(
    ("cut", "seen", "may_differ"),
    [
        (COMMITTED + 0.1, COMMITTED + 0.5, True),  # its place was taken by what came after it
        (COMMITTED - 0.2, COMMITTED + 0.5, True),
        (COMMITTED + 0.6, COMMITTED + 0.5, False),  # both were there when the log was cut
        (COMMITTED + 0.1, COMMITTED + UNREAD + 0.1, False),  # so late that nobody asks about it
    ],
)
def test_after_a_log_was_cut_an_entry_may_have_the_id_of_a_lost_one(
    cut: float, seen: float, may_differ: bool
) -> None:
    later = Told(ID, seen, Record(2, b"ride.create", b'{"id": 2, "distance": 6}', 1))
    book = LogBook([HERS, later], [Struck("redis-cut", cut, cut + 0.05)], longest=100)
    read = book.between(position(ID) - 1, position(ID), COMMITTED)
    assert book.may_differ(read, COMMITTED - 0.1, COMMITTED) is may_differ
