"""A database and a log full of markup, in every name, entry and reason that somebody can write.

A page that shows it as text has no element or attribute of these names, and no such line.
"""

import json
from contextlib import suppress

import psycopg
import redis

from tests.support.world import World, catch_up, drain

ELEMENT, ATTRIBUTE, LINE = "zq-element", "zq-attribute", "zq-line"
# Names have at most 64 characters.
TEXTS = (
    f"<{ELEMENT}>",
    f"</script></style></title></textarea><{ELEMENT}>",
    f"--></svg><{ELEMENT} {ATTRIBUTE}>",
    f"\"' {ATTRIBUTE}=\"1\" {ATTRIBUTE}='1' x=",
    f"`{ATTRIBUTE}={{{{7*191}}}}{{% raw %}}",
    f"javascript:{LINE}&lt;{ELEMENT}&gt;&#60;",
    f"red \x1b[31m\x07\x7f\x9b31m {LINE}",
    f"a\r\nevent: {LINE}\r\ndata: {LINE}\r\n\r\n",
    f'"\n# TYPE {LINE} counter\n{LINE} 1\n\\',
    f"\u202etxet\u2066 \u2028{LINE}\ufeff",
)
RENDERED = "1337"  # what a template would make of one of them

CHECKPOINTS = """
    INSERT INTO checkpoints (kind, name, position, resends_skipped, counted_at)
    SELECT kind, text, 1, 1, now()
    FROM unnest(%(texts)s::text[]) text CROSS JOIN unnest(ARRAY['total', 'outside']) kind
    UNION ALL SELECT text, 'of that kind', 1, 1, now() FROM unnest(%(texts)s::text[]) text
"""
TOTALS = """
    INSERT INTO consumer_states (name, total_distance)
    SELECT text, 1.001 FROM unnest(%s::text[]) text
"""
DEAD_RECEIPTS = """
    INSERT INTO receipts (ride_id, outcome, attempts, reason, due_at, decided_at, dead_at)
    SELECT number, 'dead', 3, 'the receiver answered 422: ' || text, now(), now(), now()
    FROM unnest(%s::text[]) WITH ORDINALITY AS texts (text, number)
"""
WORKERS = "INSERT INTO receipts_workers (name, dead) SELECT text, 1 FROM unnest(%s::text[]) text"
RECONCILIATION = """
    INSERT INTO reconciliations (position, total_distance, rides, duration_seconds, compared)
    VALUES (1, 1, 1, 1, %s) RETURNING id
"""
RESETS = """
    INSERT INTO resets (reconciliation_id, consumer_name, status, changed_at,
                        from_position, from_total, to_position, to_total)
    SELECT %s, text, 'applied', now(), 1, 1.002, 1, 1.001 FROM unnest(%s::text[]) text
"""
SET_ASIDE = """
    INSERT INTO set_aside_minutes (minute, lowest_ride_id, reason, attempts)
    SELECT date_trunc('minute', now(), 'UTC') - number * interval '1 minute', 1, text, 3
    FROM unnest(%s::text[]) WITH ORDINALITY AS texts (text, number)
"""


def fill(world: World) -> None:
    """Write all of it, by SQL, into the log, and as names of sessions."""
    texts = list(TEXTS)
    world.take(*[1] * len(texts))
    drain(world.streamer())
    execute = world.connection.execute
    execute(CHECKPOINTS, {"texts": texts})
    execute(TOTALS, [texts])
    execute(DEAD_RECEIPTS, [texts])
    execute(WORKERS, [texts])
    drifts = [{"name": text, "drift": 0.001, "total_distance": 1, "ride": 1} for text in texts]
    (reconciliation,) = execute(RECONCILIATION, [json.dumps({"consumers": drifts})]).fetchall()[0]
    execute(RESETS, [reconciliation, texts])
    execute(SET_ASIDE, [texts])
    for text in texts:
        world.connections.append(
            psycopg.connect(world.postgres_url, application_name=f"consumer {text}")
        )
    write_entries(world)


def write_entries(world: World) -> None:
    """Write entries that are no records, which a consumer sets aside; and groups with members."""
    log = world.log().redis
    for text in (*TEXTS, f"\0{LINE}", b"\xff\xfe<zq-element>"):
        log.xadd(world.stream, {text: text, "data": text, "term": text})
        log.xadd(world.stream, {"data": text})
        with suppress(redis.ResponseError):  # it is there
            log.xgroup_create(world.stream, text, "0")
        log.execute_command(  # type: ignore[no-untyped-call]
            "XREADGROUP", "GROUP", text, text, "COUNT", 1, "STREAMS", world.stream, ">"
        )
    catch_up(world.consumer())
