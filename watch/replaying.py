"""Having a dead receipt sent again, from the page: as `python -m consumers.receipts.dead` does."""

import psycopg

from rocket_rides import database
from rocket_rides.errors import Unavailable, in_one_line
from rocket_rides.log import LARGEST_ID
from rocket_rides.receipts import SHOW, change, find, why_not
from rocket_rides.settings import Settings
from rocket_rides.words import number
from watch.feed import Mood

# Somebody waits in front of a button.
LIMITS = {"statement_timeout": "2s", "lock_timeout": "1s"}


def ride_of(text: str) -> int | None:
    """The ride's id that a form names; None if that is no id."""
    is_id = text.isascii() and text.isdigit() and 0 < int(text[:20]) <= LARGEST_ID
    return int(text) if is_id else None


def replay(config: Settings, ride: int) -> tuple[str, Mood]:
    """Mark a ride's receipt, on a connection of its own; returns what to say of it."""
    receipt = f"the receipt of ride {number(ride)} is"
    try:
        with database.connect(config.postgres_url, "watch: replay", **LIMITS) as connection:
            database.require_current_schema(connection)
            if change(connection, "replay", [ride]):
                return f"{receipt} to be sent again", "news"
            why = why_not(next(iter(find(connection, SHOW, ride)), None))
            return f"{receipt} not sent again: {why}", "fault"
    except (Unavailable, psycopg.Error) as reason:
        return f"{receipt} not sent again: {in_one_line(reason)}", "fault"
