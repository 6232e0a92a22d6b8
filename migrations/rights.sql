-- What the role of each process may do with the tables: `python -m migrations.rights`, any number of
-- times. Whoever adds a table says here who writes to it, and whether the API or the nightly job
-- reads it; all others read whatever there is.

GRANT SELECT ON ALL TABLES IN SCHEMA rides TO streamer, totals, rollup, receipts, onlooker;
GRANT SELECT ON ALL SEQUENCES IN SCHEMA rides TO streamer, totals, rollup, receipts, onlooker;

-- ------------------------------------------------------------------ the streamer
GRANT INSERT, UPDATE, DELETE ON staged_log_records, streamer_state, terms TO streamer;
GRANT UPDATE ON SEQUENCE doorbell TO streamer;

-- ------------------------------------------------------------------ the consumers
GRANT INSERT, UPDATE, DELETE ON checkpoints, held_out_records, malformed_entries
    TO totals, rollup, receipts;
GRANT INSERT, UPDATE, DELETE ON consumer_states, rating_sums, resets TO totals;
GRANT INSERT, DELETE ON readers TO totals;  -- for a handler that has no recount of its own
GRANT INSERT, UPDATE, DELETE ON ride_minutes, rollup_state, set_aside_minutes, recomputations
    TO rollup;
GRANT INSERT, UPDATE, DELETE ON receipts, receipts_state, receipts_workers TO receipts;

-- ------------------------------------------------------------------ the API
GRANT SELECT ON schema_versions, rides, ratings, log_records, idempotency_keys,
    current_checkpoints, consumer_states, resets, held_out_records, rating_sums, streamer_state,
    rollup_state, ride_minutes, set_aside_minutes, receipts, receipts_state, receipts_done,
    log_kinds, terms TO api;
GRANT INSERT (distance) ON rides TO api;
GRANT INSERT (ride_id, stars) ON ratings TO api;
GRANT EXECUTE ON FUNCTION stage TO api;
GRANT INSERT (key, distance, ride_id) ON idempotency_keys TO api;
GRANT DELETE ON idempotency_keys TO api;     -- to delete old keys
GRANT SELECT, USAGE ON SEQUENCE log_position TO api;    -- SELECT for /readyz

-- ------------------------------------------------------------------ the nightly job
-- It may not approve what it has found: that takes INSERT on approvals.
GRANT SELECT ON schema_versions, rides, ratings, log_records, streamer_state, terms,
    readers, checkpoints, consumer_states, held_out_records, rating_sums, ride_minutes, rollup_state,
    set_aside_minutes, receipts, receipts_state, staged_log_records, reconciliations, resets,
    recomputations, runs, approvals, removed_readers, closings TO reconciler;
GRANT INSERT ON reconciliations, resets, recomputations, runs TO reconciler;
GRANT INSERT ON closings TO reconciler;     -- it may not reopen any, which takes an UPDATE
GRANT UPDATE ON runs TO reconciler;                         -- to complete its own row
GRANT UPDATE (used_by) ON approvals TO reconciler;
GRANT UPDATE (name) ON readers TO reconciler;   -- to lock a row for a reset's foreign key
GRANT UPDATE (recount) ON checkpoints TO reconciler;    -- to ask for a recount
-- To have a receipt delivered.
GRANT UPDATE (inbox_to, complete_to, set_backs) ON receipts_state TO reconciler;
