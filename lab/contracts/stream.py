"""The stream as an AsyncAPI document: all that a reader needs beside the contracts of its types.

An entry is a message: its fields are the headers, but for the one whose JSON is the payload. The
statements are those of docs/writing-a-consumer.md, which a test follows.
"""

import re
from collections.abc import Iterable

from lab.contracts.payloads import Schema
from rocket_rides.settings import PROJECT, Settings
from unified_log.log import CUT_LONGER, names
from unified_log.log.entries import LONGEST_ID
from unified_log.terms import TERM_BYTES

STREAM = "log.asyncapi.json"
PAGE = PROJECT / "docs/writing-a-consumer.md"
FIRST = "0, or in cell N, N times 10^14"

# In Markdown.
ABOUT = """
Each entry is one record, of whatever type: fields and values. One field holds the record's JSON,
which is the payload; the others are the headers. The entry's id is its place in the stream, which
Redis gives it; a record that is sent again has another place, and all else as before.

Ignore fields, members of the payload, and types that you do not know: more may come, none goes.
"""
FOLLOW = f"""
A reader stands at a place in the stream, at first 0-0, and at a position, at first {FIRST}.
In a loop:

1. `XREAD COUNT n STREAMS stream place`.
2. Then ask Postgres for `x-terms`: its answer has to be newer than the entries. Each row is a
   term, with `last_sent`; under a term, the ids with `after < id <= upto` are this database's.
3. Take the entries in order. The first that fits decides:
   * A required field is missing or malformed, or `prev` is not below `id`: no record. Pass it.
     Nor is one of a type that you take whose payload does not fit, or has another `id`.
   * No row has its term (empty, if it has none), or its id is outside of that term's range:
     another database's, or never committed. Pass it.
   * `id > last_sent`: not committed yet. Stop here, and read it again later.
   * `id <= position`: sent again. Pass it.
   * `prev > position`: a gap. The log has lost the records with `position < id <= prev`: take
     them by `x-heal`, with `:after` your position and `:upto` its `prev`, then this one.
   * Any other: take it, or pass it, if its type is not for you. The position is now its `id`.
4. A read that returned fewer than n entries should have led up to the `last_sent` of the round
   before (at first 0), or to this one, if that is less. What you lack up to there is a gap, too.
5. After a read that returned nothing: if the stream is gone, or its `last-generated-id` is below
   your place (both parts are numbers), the log was wiped or restored. Go back to 0-0.

Keep place, position and what you made of the records in one transaction. A restore of Postgres
gives positions out again, and the streamer trims what all readers that it knows have passed:
docs/writing-a-consumer.md says how to notice the one, and to be known.
"""
WHO = """
A user who may run XREAD, and XINFO STREAM, on the stream's key; and a role in Postgres that may
read what `x-terms` and `x-heal` name. Whoever may write to the stream can forge entries. Without
either, read `GET /log` of the API.
"""

FIELDS = {
    names.ID: "The record's position, from one sequence for all types. Positions rise, with holes;"
    " they come again in a re-send, and after a restore of Postgres. Doubles hold them exactly up"
    " to 2^53.",
    names.TYPE: "The message's name: what the payload is.",
    names.PREV: f"The position of the record before this one; of the first, {FIRST}. Above yours,"
    " it shows a gap.",
    names.TERM: "Which leader of the streamer sent it: a fencing token. Entries older than the"
    " first term have none.",
    names.TRACEPARENT: "The record's trace, as in the W3C's Trace Context, if it belongs to one.",
    names.TRACESTATE: "What the trace's vendors add.",
}


def stream(types: Iterable[str], version: str) -> Schema:
    """The document, for these types, of this version of the project."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "The log of Rocket Rides",
            "version": version,
            "description": "Every committed record, in the order of positions, as a Redis stream.",
        },
        "defaultContentType": "application/json",
        "servers": {
            "redis": {
                "host": "127.0.0.1:6379",
                "protocol": "redis",
                "description": "REDIS_URL of the fleet.",
                "security": [ref("securitySchemes", "reader")],
            }
        },
        "channels": {
            "log": {
                "address": "{stream}",
                "description": ABOUT.strip(),
                "parameters": {
                    "stream": {
                        "description": "The stream's key: STREAM_NAME of the fleet.",
                        "default": Settings.model_fields["stream_name"].default,
                    }
                },
                "messages": {type_: ref("messages", type_) for type_ in types},
            }
        },
        "operations": {
            "follow": {
                "action": "send",
                "channel": {"$ref": "#/channels/log"},
                "summary": "The streamer appends each record at least once; readers follow.",
                "description": FOLLOW.strip(),
                "x-terms": statement("### Read a batch"),
                "x-heal": statement("### Heal a gap"),
            }
        },
        "components": {
            "messages": {type_: message(type_) for type_ in types},
            "messageTraits": {"entry": entry()},
            "securitySchemes": {"reader": {"type": "userPassword", "description": WHO.strip()}},
        },
    }


def ref(section: str, name: str) -> Schema:
    return {"$ref": f"#/components/{section}/{name}"}


def message(type_: str) -> Schema:
    # Without a schemaFormat, which makes generators forget names, and what is required.
    payload = {"$ref": f"./{type_}.json"}
    return {"name": type_, "traits": [ref("messageTraits", "entry")], "payload": payload}


def entry() -> Schema:
    """The fields, as `unified_log.log.entries` reads them."""
    digits = f"^[0-9]{{1,{LONGEST_ID}}}$"
    patterns = {
        names.ID: digits,
        names.TYPE: r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$",
        names.PREV: digits,
        names.TERM: f"^[0-9a-f]{{{2 * TERM_BYTES}}}$",
    }
    return {
        "headers": {
            "type": "object",
            "properties": {
                name.decode(): {"type": "string", "description": meaning}
                | ({"pattern": patterns[name]} if name in patterns else {})
                for name, meaning in FIELDS.items()
            },
            "required": [name.decode() for name in (names.ID, names.TYPE, names.PREV)],
        },
        "x-payload-field": names.DATA.decode(),
        "description": f"Type and payload have at most {CUT_LONGER:,} bytes together.",
    }


def statement(heading: str) -> str:
    """The SQL below a heading of the page, with `:name` for each parameter."""
    below = PAGE.read_text().partition(f"\n{heading}\n")[2]
    sql = re.findall(r"^```sql\n(.*?);?\n```", below, re.MULTILINE | re.DOTALL)[0]
    return re.sub(r"%\((\w+)\)s", r":\1", sql)
