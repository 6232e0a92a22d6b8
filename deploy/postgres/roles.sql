-- A role for each process, and the schema of one of them. Run once, before the migrations, in psql, as
-- the database's owner, who may create roles; `\password api` gives one its password. Any other role
-- needs CONNECT and USAGE, too. docker-compose.yml's Postgres does all of that by itself: init.sh.

CREATE ROLE rides LOGIN;        -- owns the schema: migrations, and an operator's commands
CREATE ROLE api LOGIN;
CREATE ROLE streamer LOGIN;
CREATE ROLE totals LOGIN;       -- consumers.totals and consumers.ratings
CREATE ROLE rollup LOGIN;
CREATE ROLE receipts LOGIN;
CREATE ROLE onlooker LOGIN;     -- watch, and whoever else only reads
CREATE ROLE reconciler LOGIN;   -- the nightly job

GRANT rides TO CURRENT_USER;    -- so that the rest works without a superuser
REVOKE ALL ON DATABASE rocket_rides FROM PUBLIC;
GRANT CONNECT ON DATABASE rocket_rides
    TO rides, api, streamer, totals, rollup, receipts, onlooker, reconciler;
ALTER DATABASE rocket_rides SET search_path = rides;

CREATE SCHEMA rides AUTHORIZATION rides;
GRANT USAGE ON SCHEMA rides TO api, streamer, totals, rollup, receipts, onlooker, reconciler;
ALTER DEFAULT PRIVILEGES FOR ROLE rides IN SCHEMA rides GRANT SELECT ON TABLES TO onlooker;

-- To name sessions: who hangs, who holds an old snapshot, who is in a migration's way. Optional: it
-- takes a superuser, or the right to give this role.
GRANT pg_read_all_stats TO onlooker, streamer, rides;
