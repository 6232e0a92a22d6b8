"""Draining a backlog, compared with redis-cli --pipe adding the same entries to the same Redis."""

import subprocess
from pathlib import Path

import psycopg

from demo.embedded.programs import programs
from demo.embedded.stream_servers import REDIS
from lab.benchmarks import outbox
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.stand import STREAM, Stand, seconds
from unified_log import database, session_settings
from unified_log.streamer.drain import Streamer

RECORDS = 200_000
ROUNDS = 3
STAGED = "SELECT id, data::text FROM staged_log_records ORDER BY id"


def measure(stand: Stand) -> list[Figure]:
    """Both start with staged records and an empty log; the time for that does not count."""
    name, goal = f"Drain of {RECORDS:,} records", Goal("ratio", ">=", 0.7)
    figure = Figure(name, "records/s", "redis-cli --pipe", goal)
    indexed = session_settings.INDEX_SCANS
    with (
        stand.connect() as connection,
        database.connect(stand.postgres.url, "streamer", **indexed) as streaming,
        stand.log() as log,
    ):
        streamer = Streamer(streaming, log, outbox.BATCH)
        # Redis' own, because Valkey's wheel has none; it works with both servers.
        program = programs(REDIS.distribution, stand.folder, stand.redis.account) / "redis-cli"

        def drain() -> float:
            log.redis.delete(STREAM)
            outbox.stage(connection, RECORDS)
            return RECORDS / outbox.drain(streamer, RECORDS)

        def pipe() -> float:
            log.redis.delete(STREAM)
            outbox.stage(connection, RECORDS)
            commands = stand.folder / "commands"
            commands.write_bytes(_as_commands(connection, streamer.term.name))
            took = seconds(lambda: _run_redis_cli(program, stand, commands))
            log.redis.delete(STREAM)
            outbox.drain(streamer, RECORDS)
            return RECORDS / took

        return [figure.measure(ROUNDS, drain, pipe)]


def _as_commands(connection: psycopg.Connection, term: str) -> bytes:
    commands, prev = [], 0
    for position, data in connection.execute(STAGED):
        words = ("XADD", STREAM, "*", "data", data, "prev", str(prev), "term", term)
        lines = [f"*{len(words)}", *(f"${len(word)}\r\n{word}" for word in words), ""]
        commands.append("\r\n".join(lines))
        prev = position
    return "".join(commands).encode()


def _run_redis_cli(program: Path, stand: Stand, commands: Path) -> None:
    command = [str(program), "-s", str(stand.redis.socket), "--pipe"]
    with commands.open("rb") as file:
        run = subprocess.run(
            command, stdin=file, capture_output=True, text=True, timeout=60, check=False
        )
    if f"errors: 0, replies: {RECORDS}" not in run.stdout:
        raise RuntimeError(f"redis-cli failed: {run.stdout} {run.stderr}")
