-- Periods that are closed: what the rides up to a position add up to, as both sides said when it was
-- closed (`analytics/close.py`). It deletes nothing: the rides stay.
--
-- Totals begin at the newest one that is not reopened, instead of at the first ride
-- (`consumers/totals/closing.py`). Nothing in it is changed but, once, that it is reopened. Distances
-- are in metres, with exactly three decimals; times are instants.
CREATE TABLE closings (
    id bigint PRIMARY KEY, -- 1, 2, 3, ...
    position bigint NOT NULL CONSTRAINT closings_position CHECK (position > 0),
    rides bigint NOT NULL CONSTRAINT closings_rides CHECK (rides >= 0),
    total_distance numeric(38,3) NOT NULL
        CONSTRAINT closings_total_distance CHECK (total_distance >= 0 AND total_distance <> 'NaN'),
    -- SHA-256 over the digests of the blocks up to there: `balance` in `analytics/closings.py`.
    digest text NOT NULL CONSTRAINT closings_digest CHECK (digest ~ '^[0-9a-f]{64}$'),
    run_id bigint NOT NULL REFERENCES runs (id), -- the last one before, which had found nothing
    ledger text NOT NULL CONSTRAINT closings_ledger CHECK (ledger ~ '^[0-9a-f]{64}$'),
    closed_at timestamptz NOT NULL,
    closed_by text NOT NULL,
    previous text NOT NULL, -- the hash of the one before; '' in the first
    hash text NOT NULL,     -- closing_hash() of this row
    reopened_at timestamptz,
    reopened_by text,
    reason text,
    CONSTRAINT closings_reopened
        CHECK (num_nonnulls(reopened_at, reopened_by, reason) IN (0, 3)),
    CONSTRAINT closings_reason CHECK (reason ~ '[^[:space:]]')
);

CREATE INDEX closings_newest ON closings (position) WHERE reopened_at IS NULL;

-- SHA-256 of a closing, with the hash of the one before: all but whether it was reopened.
CREATE FUNCTION closing_hash(closing closings) RETURNS text LANGUAGE sql STABLE
RETURN encode(sha256(convert_to(concat_ws(
    '/', closing.id, closing.position, closing.rides, closing.total_distance, closing.digest,
    closing.run_id, closing.ledger, extract(epoch FROM closing.closed_at), closing.closed_by,
    closing.previous
), 'UTF8')), 'hex');

-- Each follows the one before: whoever inserts it says what was closed, and this the rest.
CREATE FUNCTION chain_closing() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT coalesce(max(id), 0) + 1 INTO NEW.id FROM closings;
    NEW.previous := coalesce((SELECT hash FROM closings WHERE id = NEW.id - 1), '');
    NEW.closed_at := clock_timestamp();
    NEW.hash := closing_hash(NEW);
    RETURN NEW;
END $$;

CREATE TRIGGER chained BEFORE INSERT ON closings
    FOR EACH ROW EXECUTE FUNCTION chain_closing();

CREATE FUNCTION refuse_another_closing() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND TG_LEVEL = 'ROW' THEN
        IF OLD.reopened_at IS NULL AND NEW.reopened_at IS NOT NULL
           AND to_jsonb(OLD) - '{reopened_at,reopened_by,reason}'::text[]
             = to_jsonb(NEW) - '{reopened_at,reopened_by,reason}'::text[] THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'a closing can''t be changed or deleted, only reopened, once'
        USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER for_good BEFORE UPDATE OR DELETE ON closings
    FOR EACH ROW EXECUTE FUNCTION refuse_another_closing();
CREATE TRIGGER not_all BEFORE TRUNCATE ON closings
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_another_closing();

-- Records below a closing that are counted only now (`unified_log/repair.py`) are not in it. Whoever
-- begins at a closing holds the lock, shared, until that is committed: so the recounts that the
-- repair asks for afterwards reach it. The number is `rocket_rides/locks.py`'s.
CREATE FUNCTION reopen_closings(ride_id bigint) RETURNS void LANGUAGE sql
BEGIN ATOMIC
    SELECT pg_advisory_xact_lock(7268010);
    UPDATE closings SET reopened_at = clock_timestamp(), reopened_by = session_user,
        reason = format('record %s was repaired', ride_id)
    WHERE position >= ride_id AND reopened_at IS NULL;
END;

INSERT INTO set_back_hooks VALUES ('reopen_closings(bigint)');

GRANT EXECUTE ON FUNCTION closing_hash TO PUBLIC;
