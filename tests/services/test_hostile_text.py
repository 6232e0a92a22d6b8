"""Whatever text somebody puts into the tables or the log, no command sends it to a terminal raw."""

import json
import re
import sys
from collections.abc import Callable

import psycopg
import pytest
from psycopg import sql

from analytics import approve
from consumers import remove
from consumers.receipts import dead
from consumers.rollup import set_aside
from tests.support.looks import at_work, look
from tests.support.world import World, catch_up
from unified_log.log import __main__ as log_command
from watch import metrics, status

# A clear screen, an end of line, a C1 control sequence, a text that runs to the left, and the end.
HOSTILE = "\x1b[2J\n\r\x9b31m\N{RIGHT-TO-LEFT OVERRIDE}\N{LINE SEPARATOR}\x7f"
RAW = re.compile(r"[^\n -~\xa0-\u200a\u2010-\u2027\u2030-\u205f\u2070-\ufffd]")

COLUMNS = """
    SELECT table_name, column_name, data_type,
           column_default IS NULL AND is_nullable = 'NO'
    FROM information_schema.columns
    JOIN information_schema.tables USING (table_schema, table_name)
    WHERE table_schema = current_schema AND table_type = 'BASE TABLE' AND is_generated = 'NEVER'
      AND is_identity = 'NO' ORDER BY table_name, ordinal_position
"""
DEAD_RECEIPT = """
    INSERT INTO receipts (ride_id, outcome, decided_at, attempts, reason)
    SELECT cell_start() + 1, 'dead', now(), 1, 'status 410'
"""
FAILED_RUN = "INSERT INTO runs (status, ended_at, reason) VALUES ('failed', now(), 'none')"
# By the type of a column: what is in the row of a table that nobody has filled, and what then.
FILLED: dict[str, object] = {
    "text": "completed",
    "jsonb": "{}",
    "ARRAY": [],
    "boolean": False,
    "timestamp with time zone": "2026-11-28 08:30Z",
    "date": "2026-11-28",
    "uuid": "0" * 32,
    "bytea": b"",
}
TEXTS: dict[str, object] = {
    "text": HOSTILE,
    "character varying": HOSTILE,
    "jsonb": json.dumps({HOSTILE: HOSTILE}),
    "ARRAY": [HOSTILE],
}
# What a process asks for first: with another text there, it says that it does not know the schema.
ASKED_FIRST = {"schema_versions"}
# Some of those that must have taken it.
PRINTED = {
    ("checkpoints", "name"),
    ("receipts", "reason"),
    ("receipts_workers", "name"),
    ("malformed_entries", "reason"),
    ("set_aside_minutes", "reason"),
    ("rating_sums", "name"),
    ("removed_readers", "removed_by"),
    ("runs", "reason"),
}
COMMANDS: dict[str, tuple[Callable[[], object], list[str]]] = {
    "status": (status.main, []),
    "dead letters": (dead.main, ["list"]),
    "log": (log_command.main, []),
    "minutes": (set_aside.main, ["list"]),
    "remove": (remove.main, ["total", HOSTILE]),
    "approve": (approve.main, ["1", "--reason", HOSTILE]),
}


def columns(world: World) -> dict[str, list[tuple[str, str, bool]]]:
    """The columns of each table: name, type, and whether a row needs a value."""
    found: dict[str, list[tuple[str, str, bool]]] = {}
    for table, *column in world.connection.execute(COLUMNS).fetchall():
        found.setdefault(table, []).append((column[0], column[1], column[2]))
    return found


def fill(world: World) -> None:
    """Put a row into each table, as far as its constraints allow, and entries into the log."""
    consumer = world.consumer()
    world.send(1)
    catch_up(consumer)
    world.connection.execute(DEAD_RECEIPT)
    world.connection.execute(FAILED_RUN)
    world.log().redis.xadd(world.stream, {HOSTILE: HOSTILE})
    for table, of in columns(world).items():
        values = {name: FILLED.get(type_, 1) for name, type_, is_needed in of if is_needed}
        row = sql.SQL("INSERT INTO {} ({}) SELECT {} WHERE NOT EXISTS (SELECT FROM {})").format(
            sql.Identifier(table),
            sql.SQL(", ").join(map(sql.Identifier, values)),
            sql.SQL(", ").join(map(sql.Literal, values.values())),
            sql.Identifier(table),
        )
        as_somebody(world, row)


def as_somebody(world: World, statement: sql.Composed) -> int:
    """How many rows it changed; none where a constraint is against it."""
    with psycopg.connect(world.postgres_url, autocommit=True) as somebody:
        somebody.execute("SET session_replication_role = replica")  # no foreign keys, no triggers
        try:
            return somebody.execute(statement).rowcount
        except psycopg.Error:
            return 0


def make_hostile(world: World, *, first: bool) -> set[tuple[str, str]]:
    """Put the text where it can stand; returns the columns that took it."""
    took = set()
    for table, of in columns(world).items():
        for name, type_, _ in of if (table in ASKED_FIRST) == first else ():
            if type_ in TEXTS:
                change = sql.SQL("UPDATE {} SET {} = {}").format(
                    sql.Identifier(table), sql.Identifier(name), sql.Literal(TEXTS[type_])
                )
                if as_somebody(world, change):
                    took.add((table, name))
    return took


def test_no_command_prints_a_control_character_of_somebodys(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(world)
    for name, value in world.settings.items():
        monkeypatch.setenv(name, value)
    for first in (False, True):
        took = make_hostile(world, first=first)
        assert first or took >= PRINTED
        for name, (main, words) in COMMANDS.items():
            monkeypatch.setattr(sys, "argv", [name, *words])
            with at_work(world, "streamer"):
                try:
                    main()
                except SystemExit as ended:
                    print(ended.code)
            said, error = capsys.readouterr()
            assert not RAW.findall(said + error), name
        told, _ = metrics.render(look(world), "")
        assert not RAW.findall(told.decode())
