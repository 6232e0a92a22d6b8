"""Receipts in SQL, as their workers, the API, the page and a person's command all see them.

A dead letter is a receipt that was given up. Nothing forgets it: it stays until it is delivered.
Replaying marks it, and the sweep takes marked ones wherever they are; the attempts so far are kept.
"""

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.rows import dict_row

# Receipts from a ride on are to be looked at again: the sweep (`consumers.receipts.sweep`) delivers
# what has no outcome. Counted, so that a sweep that is under way can't undo it.
SET_BACK = """
    UPDATE receipts_state SET complete_to = least(complete_to, %s - 1), mends = mends + 1
"""

# What tells a repetition, for `rides` with `receipts_state`. A ride keeps it for ever, in whatever
# copy of this database. A ride that takes the same number after a restore has another one: its time
# is another. The salt keeps other databases apart, and anyone from telling an id from a ride.
WEBHOOK_ID = """
    'msg_' || left(encode(sha256(concat_ws('/',
        salt, rides.id, distance, extract(epoch FROM created_at)
    )::bytea), 'hex'), 32)
"""
COLUMNS = f"""
    ride_id, {WEBHOOK_ID} AS webhook_id, distance,
    to_char(created_at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS ride_created_at,
    outcome, reason, attempts, first_at, decided_at, dead_at, replay_at, dropped_at
    FROM receipts JOIN rides ON rides.id = ride_id CROSS JOIN receipts_state
"""
LIST = f"SELECT {COLUMNS} WHERE dead_at IS NOT NULL AND dropped_at IS NULL ORDER BY ride_id"
SHOW = f"SELECT {COLUMNS} WHERE ride_id = %s"

# The guard: of two that want to replay or drop the same one, the second finds nothing to do.
WAITS_FOR_A_DECISION = "dead_at IS NOT NULL AND replay_at IS NULL AND dropped_at IS NULL"
OF_THESE = "(%(all)s OR ride_id = ANY(%(rides)s))"
WHICH = f"SELECT ride_id FROM receipts WHERE {WAITS_FOR_A_DECISION} AND {OF_THESE}"  # noqa: S608
# The attempts so far are kept, and no longer count towards the most that there may be.
REPLAY = f"""
    UPDATE receipts SET replay_at = now(), due_at = now(), forgiven = attempts, unfinished = 0
    WHERE {WAITS_FOR_A_DECISION} AND {OF_THESE} RETURNING ride_id
"""  # noqa: S608
DROP = f"""
    UPDATE receipts SET dropped_at = now()
    WHERE {WAITS_FOR_A_DECISION} AND {OF_THESE} RETURNING ride_id
"""  # noqa: S608
CHANGES = {"replay": REPLAY, "drop": DROP}

Letter = dict[str, Any]


def find(connection: psycopg.Connection, query: str, *values: object) -> list[Letter]:
    """What LIST or SHOW finds. Raises psycopg.Error."""
    return connection.cursor(row_factory=dict_row).execute(query, values).fetchall()


def change(
    connection: psycopg.Connection,
    action: str,
    rides: Sequence[int],
    *,
    every: bool = False,
    dry_run: bool = False,
) -> list[int]:
    """Replay or drop dead letters: all, or those of `rides`; returns the rides that it was done to.

    With `dry_run`, those that it would be done to. Raises psycopg.Error.
    """
    values = {"all": every, "rides": list(rides)}
    found = connection.execute(WHICH if dry_run else CHANGES[action], values)
    return sorted(ride_id for (ride_id,) in found)


def why_not(letter: Letter | None) -> str:
    """Why a receipt can neither be replayed nor dropped."""
    if letter is None:
        return "there was no attempt to deliver it"
    if letter["outcome"] == "delivered":
        return "it was delivered"
    if letter["replay_at"]:
        return "it is being sent again already"
    return "it was dropped" if letter["dropped_at"] else "it is not dead: it is being delivered"
