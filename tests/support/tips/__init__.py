"""Tips: a third kind of record, made as docs/add-a-kind.md says."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec

from unified_log.log import Data, Record, parse_data
from unified_log.readers.handler import Handler

# What a consumer has counted.
SUMS = """
    CREATE TABLE tip_sums (
        kind text NOT NULL DEFAULT 'tips' CHECK (kind = 'tips'),
        name text PRIMARY KEY,
        cents bigint NOT NULL DEFAULT 0,
        FOREIGN KEY (kind, name) REFERENCES readers (kind, name) ON DELETE CASCADE
    )
"""
# The row and its record commit together.
TIP = """
    WITH tip AS (
        INSERT INTO tips (ride_id, cents) VALUES (%s, %s) RETURNING id, ride_id, cents
    )
    SELECT stage(id, 'tip.create', jsonb_build_object('id', id, 'ride_id', ride_id, 'cents', cents))
    FROM tip
"""
ADD = "UPDATE tip_sums SET cents = cents + %s WHERE name = %s RETURNING cents"


class Tip(Data, frozen=True):
    """What a rider gave for a ride."""

    ride_id: Annotated[int, msgspec.Meta(examples=[519])]
    cents: Annotated[int, msgspec.Meta(gt=0, description="Euro cents.", examples=[100])]


def tip(record: Record) -> Tip:
    return parse_data(record, msgspec.json.Decoder(Tip).decode, "tip")


class Tips(Handler):
    """The sum of all tips, in cents."""

    KIND = "tips"
    TYPES: ClassVar = {"tip.create": tip}
    RECORD = "tip"
    STATE = "sum"

    def begin(self) -> None:
        self.connection.execute("INSERT INTO tip_sums (name) VALUES (%s)", [self.name])

    def take(self, records: Sequence[Tip]) -> None:
        self.write_state(ADD, sum(record.cents for record in records))
