"""Receipts in SQL, as several services see them."""

from rocket_rides.words import DEAD, DELIVERED, IN_FLIGHT, QUEUED, WAITING

# Receipts from a ride on are to be looked at again: the sweep puts what has no row into the inbox.
# Counted, so that a sweep that is under way can't undo it.
SET_BACK = """
    WITH set_back AS (SELECT %s::bigint - 1 AS upto)
    UPDATE receipts_state SET inbox_to = least(inbox_to, upto),
        complete_to = least(complete_to, upto), mends = mends + 1
    FROM set_back
"""

# What tells a repetition, for `rides` with `receipts_state`. A ride keeps it for ever, in whatever
# copy of this database. A ride that takes the same number after a restore has another one: its time
# is another. The salt keeps other databases apart, and anyone from telling an id from a ride.
WEBHOOK_ID = """
    'msg_' || left(encode(sha256(concat_ws('/',
        salt, rides.id, distance, extract(epoch FROM created_at)
    )::bytea), 'hex'), 32)
"""

# A dead letter, which is a receipt that was given up, until a person decides about it. It guards
# the decision: of two that want to replay or drop the same one, the second finds nothing to do.
WAITS_FOR_A_DECISION = "dead_at IS NOT NULL AND replay_at IS NULL AND dropped_at IS NULL"

# The state of a receipt, in the words of `rocket_rides.words`; a ride without a row is queued. One
# whose lease has run out waits: its worker was lost. So does a dead one that is to be sent again.
STATE = f"""
    CASE WHEN outcome = 'delivered' THEN '{DELIVERED}'
         WHEN outcome = 'dead' AND replay_at IS NULL THEN '{DEAD}'
         WHEN lease IS NOT NULL AND due_at > now() THEN '{IN_FLIGHT}'
         WHEN attempts > 0 THEN '{WAITING}' ELSE '{QUEUED}' END
"""
