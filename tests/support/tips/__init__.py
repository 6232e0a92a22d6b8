"""Tips: a third kind of record, made as docs/add-a-kind.md says."""

import msgspec

from consumers.gaps import Healed
from consumers.handler import Handler
from rocket_rides.log import Invalid

# The row and its record commit together.
TIP = """
    WITH tip AS (
        INSERT INTO tips (ride_id, cents) VALUES (%s, %s) RETURNING id, ride_id, cents
    )
    INSERT INTO staged_log_records (id, action, object, data)
    SELECT id, 'create', 'tip', jsonb_build_object('id', id, 'ride_id', ride_id, 'cents', cents)
    FROM tip RETURNING ring_doorbell()
"""


class Tip(msgspec.Struct):
    id: int
    cents: int


def tip(record):  # type: ignore[no-untyped-def]
    """The tip that a record tells of. Members that are not known here are ignored."""
    try:
        return msgspec.json.decode(record.data, type=Tip)
    except msgspec.DecodeError as error:
        raise Invalid(f"data is not a tip: {error}") from None


class Tips(Handler):
    """The sum of all tips, in cents."""

    KIND = "tips"
    TYPES = {"tip.create": tip}  # noqa: RUF012
    RECORD = "tip"

    def begin(self):  # type: ignore[no-untyped-def]
        self.connection.execute("INSERT INTO tip_sums (name) VALUES (%s)", [self.name])

    def take(self, records):  # type: ignore[no-untyped-def]
        self._add(sum(record.cents for record in records))

    def heal(self, gap):  # type: ignore[no-untyped-def]
        found = "SELECT count(*), coalesce(sum(cents), 0) FROM tips WHERE id > %s AND id <= %s"
        tips, cents = self.connection.execute(found, [gap.after, gap.upto]).fetchone()
        self._add(cents)
        return Healed(gap, tips)

    def recount(self, upto):  # type: ignore[no-untyped-def]
        recount = "SELECT coalesce(sum(cents), 0) FROM tips WHERE id <= %s"
        self.connection.execute(
            f"UPDATE tip_sums SET cents = ({recount}) WHERE name = %s", [upto, self.name]
        )

    def _add(self, cents):  # type: ignore[no-untyped-def]
        add = "UPDATE tip_sums SET cents = cents + %s WHERE name = %s"
        self.connection.execute(add, [cents, self.name])
