"""The receipts' inbox and queue, in SQL: every statement that a worker makes about `receipts`.

    log ──INBOX──▶ inbox and queue ──TAKE──▶ a worker ──SAVE──▶ delivered or dead
                     ▲       ▲                   │
      rides ──SWEEP──┘       └───────────────────┴── another attempt, or the lease ran out

The consumer group shares out the *reading*, and this table holds the *work*. A row is open until it
has an outcome, and again while a dead one is replayed.

Each statement is a transaction of its own, READ COMMITTED. Rows are locked in the order of their
rides, or only where nobody else holds them, so no two statements wait for each other in a circle.
What a crash before or after a statement leaves behind is said above it.
"""

# In seconds; no lease and no delay is as long. TAKE and MAKE_DUE have this number, too.
LONGEST_WAIT = 600.0

# The row in which a worker counts what it does: two processes of one name have one.
MAKE_WORKER = """
    INSERT INTO receipts_workers (name) SELECT %(worker)s
    WHERE NOT EXISTS (SELECT FROM receipts_workers WHERE name = %(worker)s) ON CONFLICT DO NOTHING
"""

# Puts the rides of log entries into the inbox; the entries are acknowledged afterwards. A crash
# before it leaves them pending. So does one after it: then whoever claims them inserts nothing.
#
# An entry often comes before `last_sent` is committed, which therefore is no condition here: TAKE
# waits for it. Only what `rides` has gets in, so nothing in the log can forge a receipt.
INBOX = """
    WITH queued AS (
        INSERT INTO receipts (ride_id, traceparent, tracestate)
        SELECT id, traceparent, tracestate FROM rides JOIN unnest(
            %(rides)s::bigint[], %(traceparents)s::text[], %(tracestates)s::text[]
        ) AS entry (id, traceparent, tracestate) USING (id) ORDER BY id
        ON CONFLICT DO NOTHING RETURNING ride_id
    ), counted AS (
        UPDATE receipts_workers SET version = version + 1,
            entries_ignored = entries_ignored + %(ignored)s,
            entries_passed = entries_passed + %(passed)s
        WHERE name = %(worker)s AND version >= (
            SELECT version FROM receipts_workers WHERE name = %(worker)s
            ORDER BY version DESC LIMIT 1
        ) AND (%(ignored)s > 0 OR %(passed)s > 0)
    )
    SELECT count(*) FROM queued
"""

# Keeps an entry that is no record, before INBOX, and counts it. A crash after it leaves the entry
# pending: whoever claims it keeps and counts nothing.
KEEP_MALFORMED = """
    WITH kept AS (
        INSERT INTO malformed_entries (consumer_kind, consumer_name, redis_id, fields, reason)
        VALUES ('receipts', %(group)s, %(redis_id)s, %(fields)s, %(reason)s)
        ON CONFLICT (consumer_kind, consumer_name, redis_id) DO NOTHING RETURNING id
    )
    UPDATE receipts_workers SET version = version + 1, entries_malformed = entries_malformed + 1
    WHERE name = %(worker)s AND version >= (
        SELECT version FROM receipts_workers WHERE name = %(worker)s
        ORDER BY version DESC LIMIT 1
    ) AND EXISTS (SELECT FROM kept)
"""

# Takes what is due, the oldest first, under a lease that is drawn at random; an attempt is written
# before it is made. A crash before it leaves the rows to others, at once; a crash after it leaves
# them with their attempt until the lease has run out. SKIP LOCKED: what another worker is taking is
# no longer ours to take. (An attempt's number can't be its lease: a receipt that is taken to be
# given up, which is no attempt, still has that of its last one.)
#
# Quarantined is what was taken twice in a row, without anybody having written down how that ended.
# Perhaps it is what ended its workers. A worker has one of these in flight at a time, so that none
# costs another its attempts; those with the fewest such attempts come first. Receipts that are not
# quarantined go out beside it: else it would hold up its worker for a whole time-out.
#
# `begin_at`: due times below it have been looked at. While a snapshot is held elsewhere, the index
# keeps an entry of every row that was ever taken, and a look from the start passes over them all.
# A look back, once a second, begins where something can be due, unless clocks were set; so does a
# new session. A look at all, once a minute, finds what is due even then. The schema's
# `receipts_lag` begins where a look back does, in the same words.
#
# A receipt that has had all of its attempts, the last without a known end, or has had more than are
# allowed now, is taken, too: not to be sent, but to be given up, which is no attempt. A row whose
# ride is gone, deleted by hand, would hold up `complete_to` for ever, and goes. And a ride's time
# that Python can't express, set by hand, becomes the nearest that it can.
TAKE = """
    WITH quarantined AS MATERIALIZED (
        SELECT ride_id, due_at, unfinished, attempts - excused >= %(most)s AS is_exhausted
        FROM receipts
        WHERE (outcome IS NULL OR replay_at IS NOT NULL) AND unfinished >= 2
          AND (due_at <= now() OR due_at > now() + make_interval(secs => 600))
          AND ride_id <= (SELECT last_sent_id FROM streamer_state ORDER BY version DESC LIMIT 1)
        ORDER BY unfinished, due_at LIMIT %(quarantined)s FOR NO KEY UPDATE SKIP LOCKED
    ), others AS MATERIALIZED (
        SELECT ride_id, due_at, unfinished, attempts - excused >= %(most)s AS is_exhausted
        FROM receipts
        WHERE (outcome IS NULL OR replay_at IS NOT NULL) AND unfinished < 2
          AND due_at >= coalesce(%(begin_at)s, least(
              (SELECT created_at FROM rides WHERE id > (
                  SELECT complete_to FROM receipts_state ORDER BY version DESC LIMIT 1
               ) ORDER BY id LIMIT 1),
              (SELECT min(replay_at) FROM receipts WHERE replay_at IS NOT NULL), now()
          ) - interval '1 minute') AND due_at <= now()
          AND ride_id <= (SELECT last_sent_id FROM streamer_state ORDER BY version DESC LIMIT 1)
        ORDER BY due_at LIMIT %(room)s - (SELECT count(*) FROM quarantined)
        FOR NO KEY UPDATE SKIP LOCKED
    ), due AS (
        SELECT * FROM quarantined UNION ALL SELECT * FROM others
    ), gone AS (
        DELETE FROM receipts USING due WHERE receipts.ride_id = due.ride_id
          AND NOT EXISTS (SELECT FROM rides WHERE id = due.ride_id)
    ), taken AS (
        UPDATE receipts SET attempts = attempts + (NOT is_exhausted)::int,
            unfinished = receipts.unfinished + (NOT is_exhausted)::int,
            lease = %(lease)s, due_at = now() + make_interval(secs => %(seconds)s),
            first_at = coalesce(first_at, now())
        FROM due JOIN rides ON rides.id = due.ride_id CROSS JOIN (
            SELECT salt FROM receipts_state ORDER BY version DESC LIMIT 1
        ) state
        WHERE receipts.ride_id = due.ride_id
        RETURNING due.*, distance, created_at,
            webhook_id(salt, rides.id, distance, created_at) AS webhook_id,
            traceparent, tracestate, attempts - excused AS number, reason
    )
    SELECT ride_id, distance, least(greatest(created_at, '0002-01-01'), '9998-12-31'), webhook_id,
           traceparent, tracestate, number, unfinished, is_exhausted, reason, due_at
    FROM taken ORDER BY due_at
"""

# Writes down how attempts ended. A crash before it leaves attempts without a known end, which are
# made again once their lease has run out; a crash after it leaves nothing.
#
# `delivered` replaces `dead`, never the reverse: a worker that was superseded may still say that
# the receiver has the receipt. It may say nothing else: its lease shows that it was superseded.
# Each end empties the lease, so a second copy of this statement changes nothing. A verdict on a
# ride that a restore has undone meanwhile has another webhook-id.
#
# SKIP LOCKED: a row that somebody holds holds up none of the others. It comes back as held, for
# another try.
SAVE = """
    WITH given AS MATERIALIZED (
        SELECT given.*
        FROM unnest(%(rides)s::bigint[], %(ids)s::text[], %(leases)s::uuid[], %(kinds)s::text[],
                    %(reasons)s::text[], %(delays)s::float8[])
            AS given (ride_id, webhook_id, lease, kind, reason, delay)
        CROSS JOIN (SELECT salt FROM receipts_state ORDER BY version DESC LIMIT 1) state
        JOIN rides ON rides.id = given.ride_id
        WHERE given.webhook_id = webhook_id(salt, rides.id, distance, created_at)
    ), ended AS MATERIALIZED (
        SELECT receipts.ride_id, given.lease, given.reason, delay,
               kind IN ('away', 'stopped') AS is_excused,
               CASE WHEN kind = 'delivered' THEN 'delivered'
                    WHEN kind = 'refused' OR kind = 'retry' AND attempts - excused >= %(most)s
                    THEN 'dead' END AS decided
        FROM given JOIN receipts ON receipts.ride_id = given.ride_id
        WHERE receipts.ride_id = ANY(%(rides)s) FOR NO KEY UPDATE OF receipts SKIP LOCKED
    ), saved AS (
        UPDATE receipts SET
            outcome = coalesce(decided, outcome),
            decided_at = CASE WHEN decided IS NULL THEN decided_at ELSE now() END,
            replay_at = CASE WHEN decided IS NULL THEN replay_at END,
            dropped_at = CASE WHEN decided = 'delivered' THEN NULL ELSE dropped_at END,
            reason = CASE WHEN decided = 'delivered' THEN NULL ELSE ended.reason END,
            excused = excused + is_excused::int,
            unfinished = 0,
            lease = NULL,
            due_at = now() + make_interval(secs => delay)
        FROM ended
        WHERE receipts.ride_id = ended.ride_id AND outcome IS DISTINCT FROM 'delivered'
          AND (decided = 'delivered' OR receipts.lease = ended.lease)
        RETURNING receipts.ride_id, decided
    ), counted AS (
        UPDATE receipts_workers SET version = version + 1,
            delivered = receipts_workers.delivered + done.delivered,
            dead = receipts_workers.dead + done.dead
        FROM (
            SELECT count(*) FILTER (WHERE decided = 'delivered') AS delivered,
                   count(*) FILTER (WHERE decided = 'dead') AS dead
            FROM saved HAVING count(decided) > 0
        ) done
        WHERE name = %(worker)s AND version >= (
            SELECT version FROM receipts_workers WHERE name = %(worker)s
            ORDER BY version DESC LIMIT 1
        )
    )
    SELECT ride_id, decided, false AS is_held FROM saved
    UNION ALL
    SELECT ride_id, NULL, true FROM given
    WHERE ride_id NOT IN (SELECT ride_id FROM ended)
      AND EXISTS (SELECT FROM receipts WHERE receipts.ride_id = given.ride_id)
"""

# Proves that the inbox is complete, a page of rides at a time, and puts into it what the log has
# not brought: after a flush, a restore, a trim, or a crash before INBOX. A crash leaves nothing:
# the next sweep finds the same rides.
#
# `upto` was settled long enough ago for the log to have brought it. Only stranded rides can appear
# below it; their repair counts itself in `set_backs`. The watermark moves only while that is as it
# was in the snapshot of the rides, so it passes no ride that was not looked at. While somebody
# holds its row, it stays: nobody waits for him. Where `last_sent` is lower than `upto`, this
# database was restored, and what was seen before says nothing.
SWEEP = """
    WITH state AS MATERIALIZED (
        SELECT version, inbox_to, complete_to, set_backs, last_sent_id,
               CASE WHEN %(upto)s <= last_sent_id THEN %(upto)s ELSE 0 END AS upto
        FROM (SELECT * FROM receipts_state ORDER BY version DESC LIMIT 1) receipts CROSS JOIN (
            SELECT last_sent_id FROM streamer_state ORDER BY version DESC LIMIT 1
        ) streamer
    ), page AS MATERIALIZED (
        SELECT id FROM rides
        WHERE id > (SELECT inbox_to FROM state) AND id <= (SELECT upto FROM state)
        ORDER BY id LIMIT %(page)s
    ), swept AS (
        INSERT INTO receipts (ride_id)
        SELECT id FROM page WHERE NOT EXISTS (SELECT FROM receipts WHERE ride_id = id) ORDER BY id
        ON CONFLICT DO NOTHING RETURNING ride_id
    ), counted AS (
        UPDATE receipts_workers SET version = version + 1, swept = swept + found.rides
        FROM (SELECT count(*) AS rides FROM swept HAVING count(*) > 0) found
        WHERE name = %(worker)s AND version >= (
            SELECT version FROM receipts_workers WHERE name = %(worker)s
            ORDER BY version DESC LIMIT 1
        )
    ), looked AS (
        SELECT count(*) = %(page)s AS is_full,
               CASE WHEN count(*) = %(page)s THEN max(id) ELSE (SELECT upto FROM state) END AS upto
        FROM page
    ), free AS (
        SELECT FROM receipts_state WHERE version >= (SELECT version FROM state)
        FOR NO KEY UPDATE SKIP LOCKED
    ), moved AS (
        UPDATE receipts_state SET version = receipts_state.version + 1, inbox_to = looked.upto
        FROM state CROSS JOIN looked CROSS JOIN free
        WHERE receipts_state.version >= (SELECT version FROM state)
          AND receipts_state.set_backs = state.set_backs
          AND looked.upto > receipts_state.inbox_to
    )
    SELECT last_sent_id, is_full AND EXISTS (SELECT FROM free),
           ARRAY(SELECT ride_id FROM swept ORDER BY ride_id),
           EXISTS (SELECT FROM free) AND greatest(looked.upto, state.inbox_to) > complete_to
    FROM state CROSS JOIN looked
"""

# Moves `complete_to` up to the first ride without an outcome, a page of rides at a time, under the
# same compare as SWEEP. A crash leaves nothing.
COMPLETE = """
    WITH state AS MATERIALIZED (
        SELECT version, inbox_to, complete_to, set_backs FROM receipts_state
        ORDER BY version DESC LIMIT 1
    ), page AS MATERIALIZED (
        SELECT ride_id, outcome FROM receipts
        WHERE ride_id > (SELECT complete_to FROM state) AND ride_id <= (SELECT inbox_to FROM state)
        ORDER BY ride_id LIMIT %(page)s
    ), looked AS (
        SELECT count(*) = %(page)s AS is_full,
               coalesce(min(ride_id) FILTER (WHERE outcome IS NULL) - 1,
                        CASE WHEN count(*) = %(page)s THEN max(ride_id)
                             ELSE (SELECT inbox_to FROM state) END) AS upto
        FROM page
    )
    UPDATE receipts_state SET version = receipts_state.version + 1, complete_to = looked.upto
    FROM state CROSS JOIN looked
    WHERE receipts_state.version >= (SELECT version FROM state)
      AND receipts_state.set_backs = state.set_backs
      AND looked.upto > receipts_state.complete_to
    RETURNING is_full
"""

# What was written while Postgres' clock was ahead is due in a time that is longer than any wait of
# ours. A crash leaves nothing.
MAKE_DUE = """
    UPDATE receipts SET due_at = now() WHERE ride_id = ANY(ARRAY(
        SELECT ride_id FROM receipts
        WHERE (outcome IS NULL OR replay_at IS NOT NULL) AND unfinished < 2
          AND due_at > now() + make_interval(secs => 600)
        ORDER BY due_at DESC LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED
    )) RETURNING ride_id
"""
