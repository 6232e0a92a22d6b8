"""Receipts in SQL, as several services see them."""

from rocket_rides.words import DEAD, DELIVERED, IN_FLIGHT, QUEUED, WAITING

# Has the sweep look again at the receipts from a ride on.
SET_BACK = "SELECT set_back_receipts(%s)"

# By this id a receiver recognizes a repetition; it is made from `rides` and `receipts_state`. A
# ride keeps it for ever, in every copy of this database. A ride that gets the same number after a
# restore has another one, because its time differs. The salt keeps it different from other
# databases' ids, and keeps anyone from working it out from the ride.
WEBHOOK_ID = """
    'msg_' || left(encode(sha256(concat_ws('/',
        salt, rides.id, distance, extract(epoch FROM created_at)
    )::bytea), 'hex'), 32)
"""

# A dead letter: a receipt that was given up, until a person decides about it. This condition guards
# the decision: if two people replay or drop the same one, the second changes nothing.
WAITS_FOR_A_DECISION = "outcome = 'dead' AND replay_at IS NULL AND dropped_at IS NULL"

# The state of a receipt, in the words of `rocket_rides.words`; a ride without a row is queued. One
# whose lease has run out waits: its worker was lost. So does a dead one that is to be sent again.
STATE = f"""
    CASE WHEN outcome = 'delivered' THEN '{DELIVERED}'
         WHEN outcome = 'dead' AND replay_at IS NULL THEN '{DEAD}'
         WHEN lease IS NOT NULL AND due_at > now() THEN '{IN_FLIGHT}'
         WHEN attempts > 0 THEN '{WAITING}' ELSE '{QUEUED}' END
"""
