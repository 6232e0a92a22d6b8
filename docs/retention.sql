-- What a person may delete of the tables that only grow, while the fleet is running:
--
--     make psql ARGS="-1 -f docs/retention.sql"
--
-- Each table grows by a few rows a night or an incident, so once a year is often enough; it does no
-- harm not to run this at all. 400 days keep a whole year for the report's charts. `rides` is the
-- truth that all totals are proved by: none of it may go. Idempotency keys are pruned by the API.

-- One snapshot for all statements. Should it fail because something changed meanwhile: run it again.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;

-- Malformed entries. Nothing refers to them. One that is read again is kept again.
DELETE FROM malformed_entries WHERE created_at < now() - interval '400 days';

-- Resets, except those that a consumer has yet to look at, and each consumer's newest, which
-- GET /consumers shows.
DELETE FROM resets
WHERE status <> 'pending' AND changed_at < now() - interval '400 days'
  AND id < (SELECT max(id) FROM resets newer WHERE newer.consumer_name = resets.consumer_name);

-- Minutes that the rollup was asked to compute anew, and has.
DELETE FROM recomputations
WHERE status = 'done' AND changed_at < now() - interval '400 days';

-- Reconciliations that no such request refers to, except the newest run: by it the next one knows whether
-- the warehouse should hold rides, and the reconciler whether it has missed a night.
DELETE FROM reconciliations
WHERE created_at < now() - interval '400 days'
  AND NOT EXISTS (SELECT FROM resets WHERE reconciliation_id = reconciliations.id)
  AND NOT EXISTS (SELECT FROM recomputations WHERE reconciliation_id = reconciliations.id)
  AND id IS DISTINCT FROM (SELECT max(id) FROM reconciliations);

-- Runs and the decisions on them, except the last completed run, which the next one goes on from,
-- whatever has come since, and those on which a period was closed.
DELETE FROM approvals WHERE approved_at < now() - interval '400 days' AND run_id < (
    SELECT max(id) FROM runs WHERE status IN ('agreed', 'wrong', 'held')
);
DELETE FROM runs
WHERE ended_at < now() - interval '400 days'
  AND NOT EXISTS (SELECT FROM approvals WHERE runs.id IN (run_id, used_by))
  AND NOT EXISTS (SELECT FROM closings WHERE run_id = runs.id)
  AND id < least(
      (SELECT max(id) FROM runs WHERE status IN ('agreed', 'wrong', 'held')),
      (SELECT max(id) FROM runs WHERE status IN ('agreed', 'wrong', 'held') AND ledgers <> '{}')
  );

-- Terms: a row for each leader that sent something, and ten thousand cost a reader 0.03 s once. So
-- leave them, unless leaders change every few minutes for years. Readers below a term's end need
-- it, and the warehouse needs the newest run's. A reader of the feed, of whom no table tells, needs
-- the one in which it read last: so those of the last 400 days stay. Terms that are older than all of
-- these are replaced by a single one, whose name no entry has: without it, the ids that they cover
-- would pass to the terms that stay, and to entries that have none. A consumer that begins later does
-- not count what the log still holds of them, says so, and heals it from the tables.
INSERT INTO terms (after, term)
SELECT cell_start(), left(md5(random()::text), 16) FROM (
    SELECT max(after) AS first FROM terms
    WHERE began_at < now() - interval '400 days' AND after < least(
        (SELECT min(position) FROM checkpoints),
        (SELECT position FROM reconciliations ORDER BY id DESC LIMIT 1)
    )
) needed
WHERE first > cell_start()
ON CONFLICT (after) DO UPDATE SET term = excluded.term, replaced = '{}';
DELETE FROM terms
WHERE after > cell_start() AND after < (
    SELECT max(after) FROM terms
    WHERE began_at < now() - interval '400 days' AND after < least(
        (SELECT min(position) FROM checkpoints),
        (SELECT position FROM reconciliations ORDER BY id DESC LIMIT 1)
    )
);
