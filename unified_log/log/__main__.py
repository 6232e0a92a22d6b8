"""`python -m unified_log.log`: shows the log's entries, a range of them, or new ones.

    python -m unified_log.log --from 14:30 --to 14:35
    python -m unified_log.log --from 521 --to 530 --json
    python -m unified_log.log --reverse --count 10 --type order.create
    python -m unified_log.log --follow
    python -m unified_log.log --pending

A line has the time at which Redis took the entry, the entry's id in the stream, its position and
type, the position before, the term, which tells a reader whether the entry is its own database's,
and its data. All entries are shown here, even those that no reader would count.

PLACE is one of

    521                    a position: a record's number. All of the log is searched, since after
                           a double send several entries have it, anywhere
    1700000000000-0        a stream id, which has a dash
    14:30 or 14:30:05      a time of day, in UTC, as in the lines: the last one that has passed;
                           for --to, the first one after a time or an age in --from
    2026-03-28T14:30:00Z   a moment, as in RFC 3339
    90s, 10m, 12h or 7d    an age

Positions and ids are included, at either end; what has just the time that --to names is not. A
range of positions, and a --type, leave out what is not a record.

It only reads the log, and moves nothing.
"""

import argparse
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence

import redis

from unified_log import durations, settings, words
from unified_log.errors import Refused, in_one_line
from unified_log.log import LARGEST_ID, START, Log, lines, pending, places
from unified_log.log.queries import Query, begins_late, selected
from unified_log.process import Parser

PROGRAM = "python -m unified_log.log"


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line, or the end of the process with one clear line."""
    parser = Parser(PROGRAM, f"{__doc__}{lines.IN_JSON}{pending.IN_JSON}")
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument(
        "--from",
        dest="start",
        type=_place,
        metavar="PLACE",
        help="where to begin; by default at the first entry, or with --follow at the next new one",
    )
    begin.add_argument(
        "--since", dest="start", type=_age, metavar="AGE", help="the same, for an age"
    )
    parser.add_argument(
        "--to", dest="end", type=_place, metavar="PLACE", help="where to end; by default at the end"
    )
    parser.add_argument("--reverse", action="store_true", help="the newest entries first")
    parser.add_argument("--count", type=_count, metavar="N", help="at most so many entries")
    parser.add_argument("--type", type=os.fsencode, help="only records of it, as in order.create")
    parser.add_argument("--follow", action="store_true", help="wait for new entries, until Ctrl-C")
    parser.add_argument("--json", action="store_true", help="a JSON object a line")
    parser.add_argument(
        "--pending",
        action="store_true",
        help="what consumer groups have in flight, of which member, for how long; and the members",
    )
    given = parser.parse_args(arguments)
    if given.follow and (given.reverse or given.end):
        parser.error("--follow goes on with new entries: it can't be with --reverse or --to")
    is_query = given.start or given.end or given.reverse or given.type is not None or given.follow
    if given.pending and is_query:
        parser.error("--pending can only be with --count and --json")
    return given


def _place(text: str) -> places.Place:
    try:
        return places.parse(text)
    except ValueError as refusal:
        raise argparse.ArgumentTypeError(f"{text!r}: {refusal}") from None


def _age(text: str) -> places.Age:
    try:
        return places.Age(durations.seconds(text))
    except ValueError as refusal:
        raise argparse.ArgumentTypeError(f"{text!r}: {refusal}") from None


def _count(text: str) -> int:
    if not (re.fullmatch(r"[0-9]{1,19}", text) and 1 <= int(text) <= LARGEST_ID):
        raise argparse.ArgumentTypeError(f"{text!r}: a number from 1 to {LARGEST_ID} is expected")
    return int(text)


def batches(log: Log, given: argparse.Namespace) -> Iterator[list[str]]:
    """The lines that the options ask for.

    Raises redis.RedisError, and places.Backwards where no entry can lie in the range.
    """
    if given.pending:
        yield from ([line] for line in pending.lines(log, given.count, as_json=given.json))
        return
    within = places.between(given.start, given.end, log.clock)
    query = Query(within, given.type, given.count, reverse=given.reverse, follow=given.follow)
    if log.last_id() == START:
        print(f"there is no stream {log.name}", file=sys.stderr)  # noqa: T201
    if (given.start or given.end) and (first := begins_late(log, within)):
        earlier = "earlier records are in Postgres, in log_records"
        print(f"the log begins at {first}: {earlier}", file=sys.stderr)  # noqa: T201
    in_line = lines.as_json if given.json else lines.in_words
    for page in selected(log, query):
        yield [in_line(entry) for entry in page]


def main() -> None:
    """Print the entries that were asked for."""
    # Ctrl-C is how a person ends it, so make must not call that an error.
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    given = parse_options()
    config = settings.load()
    try:
        with Log(config.log_url, config.stream_name) as log:
            for batch in batches(log, given):
                print("".join(f"{line}\n" for line in batch), end="", flush=True)  # noqa: T201
    except OSError as error:  # of stdout, which would be tried again at the end of the process
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # else whoever read it has seen enough
            raise SystemExit(f"stdout can't be written: {error.strerror}") from None
    except redis.ConnectionError as error:
        reason = in_one_line(error).removeprefix("Redis: ").rstrip(".")
        absent = config.why_absent(config.log_url)
        raise SystemExit(absent or f"Redis can't be reached: {reason}") from None
    except redis.RedisError as error:
        why = " is no stream" if "WRONGTYPE" in str(error) else f": {in_one_line(error)}"
        raise SystemExit(f"{words.escaped(config.stream_name)}{why}") from None
    except Refused as reason:
        raise SystemExit(in_one_line(reason)) from None
    except places.Backwards as refusal:
        Parser(PROGRAM, None).error(str(refusal))


if __name__ == "__main__":
    main()
