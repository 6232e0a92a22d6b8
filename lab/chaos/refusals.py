"""Refusals: for a while, a total's state refuses rides that are longer than the nemesis allows.

A trigger stands for any constraint. It judges the mean of what one statement adds, so a batch may
pass of which a single ride would not. The total has to hold out what is to blame, and no more. A
gap whose rides are too long on average can't be healed meanwhile.
"""

import psycopg

TABLE = """
    CREATE TABLE IF NOT EXISTS chaos.refusals (
        name text PRIMARY KEY,  -- a total
        longest numeric NOT NULL  -- metres
    );
    CREATE OR REPLACE FUNCTION chaos.refuse_long_rides() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF EXISTS (
            SELECT FROM chaos.refusals WHERE name = NEW.name AND NEW.rides > OLD.rides
            AND NEW.total_distance - OLD.total_distance > longest * (NEW.rides - OLD.rides)
        ) THEN
            RAISE EXCEPTION '% m are too much for %', NEW.total_distance - OLD.total_distance,
                NEW.name USING ERRCODE = 'check_violation';
        END IF;
        RETURN NEW;
    END $$;
    DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgname = 'refuse_long_rides') THEN
        CREATE TRIGGER refuse_long_rides BEFORE UPDATE ON consumer_states
            FOR EACH ROW EXECUTE FUNCTION chaos.refuse_long_rides();
    END IF; END $$
"""
# Of the newest rides, so many are as short, or shorter.
BEGIN = """
    INSERT INTO chaos.refusals
    SELECT %(name)s, percentile_disc(%(share)s) WITHIN GROUP (ORDER BY distance)
    FROM (SELECT distance FROM rides ORDER BY id DESC LIMIT 200) newest
    HAVING count(*) > 0
    ON CONFLICT DO NOTHING RETURNING longest
"""
# What is still held out then, and what a restore has brought back, is tried again.
END = """
    WITH over AS (DELETE FROM chaos.refusals WHERE name = ANY(%(names)s))
    UPDATE held_out_records SET retry = true, dropped_at = NULL WHERE name = ANY(%(names)s)
"""
DROP = """
    UPDATE held_out_records SET retry = false, dropped_at = now()
    WHERE name = %s AND position = (SELECT min(position) FROM held_out_records WHERE name = %s)
"""


def begin(connection: psycopg.Connection, name: str, share: float) -> str | None:
    """Refuse rides longer than this share of the newest; None if it did so before, or has none."""
    row = connection.execute(BEGIN, {"name": name, "share": share}).fetchone()
    return f"{row[0]} m" if row else None


def drop(connection: psycopg.Connection, name: str) -> int:
    """Give up the first record that this total holds out; returns how many there were: 0 or 1."""
    return connection.execute(DROP, [name, name]).rowcount


def end(connection: psycopg.Connection, *names: str) -> int:
    """Refuse nothing more, and have what these hold out tried again; returns how many that are."""
    return connection.execute(END, {"names": [*names]}).rowcount
