"""`python -m rocket_rides.log`: shows the log's entries, all or the latest, and new ones.

    python -m rocket_rides.log --since 10m
    python -m rocket_rides.log --follow

A line has the time at which Redis took the entry, the entry's id in the stream, its position and
type, the position before, the term, which tells a reader whether the entry is its own database's,
and its data. All entries are shown here, even those that no reader would count.

It only reads the log, and moves nothing.
"""

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import redis

from rocket_rides import durations, fleet, settings
from rocket_rides.errors import in_one_line
from rocket_rides.log import CUT_LONGER, START, Entry, Invalid, Log, as_numbers, cut, decode
from rocket_rides.process import Parser

BATCH = 1000
POLL = 1.0  # seconds that a single read waits for a new entry


def parse_options(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line, or the end of the process with one clear line."""
    parser = Parser("python -m rocket_rides.log", __doc__)
    parser.add_argument(
        "--since",
        type=_duration,
        metavar="AGE",
        help="entries of the last 90s, 10m, 12h or 7d; by default all, or with --follow only new"
        " ones",
    )
    parser.add_argument("--follow", action="store_true", help="wait for new entries, until Ctrl-C")
    return parser.parse_args(arguments)


def _duration(text: str) -> float:
    try:
        return durations.seconds(text)
    except ValueError as refusal:
        raise argparse.ArgumentTypeError(f"{text!r}: {refusal}") from None


def entries(log: Log, since: float | None, follow: bool) -> Iterator[list[Entry]]:
    """The entries of the last `since` seconds, or all, in batches; with `follow`, without end.

    Without `follow`, entries that are appended meanwhile are left out, or nearly all of them.
    Raises redis.RedisError.
    """
    last = log.last_id()
    after = last if follow else START
    if since is not None:
        after = f"{max(0, log.clock() - round(since * 1000))}-0"
    while follow or as_numbers(after) < as_numbers(last):
        batch = log.read(after, BATCH, POLL if follow else 0)
        if batch:
            yield batch
            after = batch[-1].redis_id
        elif not follow:
            return


def in_words(entry: Entry) -> str:
    """An entry as a line for a person."""
    when = f"{appended_at(entry) or 'after the year 9999':24}  {entry.redis_id:>20}"
    try:
        record = decode(entry.fields)
    except Invalid as reason:
        return f"{when}  not a record: {reason}"
    # Whatever bytes these are, they stay on one line.
    type_, term, data = (
        ascii(cut(field, len(field), CUT_LONGER).decode(errors="replace"))[1:-1]
        for field in (record.type, record.term, record.data)
    )
    return f"{when}  {record.id}  {type_}  after {record.prev}  term {term or '-'}  {data}"


def appended_at(entry: Entry) -> str | None:
    """By Redis' clock, in RFC 3339, in UTC; None for a time beyond the year 9999."""
    milliseconds, _ = as_numbers(entry.redis_id)
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def main() -> None:
    """Print the entries that were asked for."""
    # Ctrl-C is how a person ends it, so make must not call that an error.
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    options = parse_options()
    config = settings.load()
    try:
        with Log(config.log_url, config.stream_name) as log:
            for batch in entries(log, options.since, options.follow):
                print("".join(f"{in_words(entry)}\n" for entry in batch), end="", flush=True)  # noqa: T201
    except BrokenPipeError:  # whoever read this has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except redis.ConnectionError as error:
        reason = in_one_line(error).removeprefix("Redis: ").rstrip(".")
        nobody = fleet.not_started(config.data_dir) if config.embedded_redis else ""
        raise SystemExit(nobody or f"Redis can't be reached: {reason}") from None
    except redis.RedisError as error:
        raise SystemExit(in_one_line(error)) from None


if __name__ == "__main__":
    main()
