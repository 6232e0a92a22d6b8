"""Tips: a third kind of record, made as docs/add-a-kind.md says."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from consumers.gaps import Gap, Healed
from consumers.handler import Handler
from rocket_rides.database import one_row
from rocket_rides.log import Data, Record, parse_data

# The row and its record commit together.
TIP = """
    WITH tip AS (
        INSERT INTO tips (ride_id, cents) VALUES (%s, %s) RETURNING id, ride_id, cents
    )
    INSERT INTO staged_log_records (id, action, object, data)
    SELECT id, 'create', 'tip', jsonb_build_object('id', id, 'ride_id', ride_id, 'cents', cents)
    FROM tip RETURNING ring_doorbell()
"""


class Tip(Data, frozen=True):
    cents: int


def tip(record: Record) -> Tip:
    """The tip that a record tells of."""
    return parse_data(record, msgspec.json.Decoder(Tip).decode, "tip")


class Tips(Handler):
    """The sum of all tips, in cents."""

    KIND = "tips"
    TYPES: ClassVar = {"tip.create": tip}
    RECORD = "tip"

    def begin(self) -> None:
        self.connection.execute("INSERT INTO tip_sums (name) VALUES (%s)", [self.name])

    def take(self, records: Sequence[Tip]) -> None:
        self.add(sum(record.cents for record in records))

    def heal(self, gap: Gap) -> Healed:
        found = "SELECT count(*), coalesce(sum(cents), 0) FROM tips WHERE id > %s AND id <= %s"
        tips, cents = one_row(self.connection.execute(found, [gap.after, gap.upto]))
        self.add(cents)
        return Healed(gap, tips)

    def recount(self, upto: int) -> None:
        recount = "SELECT coalesce(sum(cents), 0) FROM tips WHERE id <= %s"
        set_ = f"UPDATE tip_sums SET cents = ({recount}) WHERE name = %s"
        self.connection.execute(set_, [upto, self.name])

    def add(self, cents: int) -> None:
        add = "UPDATE tip_sums SET cents = cents + %s WHERE name = %s"
        self.connection.execute(add, [cents, self.name])
