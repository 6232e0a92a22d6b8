"""Which reasons of a server that does not start are in its data: only then that may be moved."""

import pytest

from demo.embedded.servers import Postgres, Redis


@pytest.mark.parametrize(
    "reason",
    [
        "database files are incompatible with server The data directory was initialized by"
        " PostgreSQL version 13, which is not compatible with this version 18.0.",
        "postgres: could not find the database system",
        "could not locate a valid checkpoint record at 0/1",
        "incorrect checksum in control file",
        'could not open file "global/pg_control": No such file or directory',
        'relation mapping file "global/pg_filenode.map" contains invalid data',
        '"/data/postgres" is not a valid data directory',
    ],
)
def test_postgres_blames_its_data(reason: str) -> None:
    assert Postgres.blames_data.search(reason)


@pytest.mark.parametrize(
    "reason",
    [
        "could not create any Unix-domain sockets",
        'could not create lock file "/x/.s.PGSQL.5432.lock": No such file or directory',
        'data directory "/data/postgres" has wrong ownership',
        'data directory "/data/postgres" has invalid permissions',
        'configuration file "postgresql.auto.conf" contains errors',
        "could not map anonymous shared memory: Cannot allocate memory",
        'could not write to file "pg_wal/xlogtemp.1": No space left on device',
        "LOG:  database system was shut down at 2025-11-22 14:03:22 UTC",
    ],
)
def test_postgres_blames_something_else(reason: str) -> None:
    assert not Postgres.blames_data.search(reason)


@pytest.mark.parametrize(
    "reason",
    [
        "Bad file format reading the append only file appendonly.aof.1.incr.aof: make a backup",
        "Unexpected end of file reading the append only file appendonly.aof.1.incr.aof.",
        "Wrong RDB checksum expected: (1) but got (2). Aborting now.",
        "Fatal error loading the DB, check server logs. Exiting.",
        "The AOF manifest file appendonly.aof.manifest doesn't exist",
    ],
)
def test_redis_blames_its_data(reason: str) -> None:
    assert Redis.blames_data.search(reason)


@pytest.mark.parametrize(
    "reason",
    [
        "Failed opening Unix socket: bind: No such file or directory",
        "Can't open or create append-only dir appendonlydir: Permission denied",
        "Fatal error: can't open the append log file a.aof for reading: Permission denied",
        "Can't persist AOF for fsync error when the AOF fsync policy is 'always': I/O error.",
        "Error writing the append only file: No space left on device",
    ],
)
def test_redis_blames_something_else(reason: str) -> None:
    assert not Redis.blames_data.search(reason)
