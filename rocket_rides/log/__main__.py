"""`python -m rocket_rides.log`: shows the log's entries of a range of time, and new ones.

    python -m rocket_rides.log --since 10m
    python -m rocket_rides.log --since 2026-03-28T20:00:00Z --until 2026-03-28T21:00:00Z --json
    python -m rocket_rides.log --follow

A line has the time at which Redis took the entry, the entry's id, the ride's, and the distance in
metres. `--json` has everything: `prev`, the ride before, and `term`, which tells a reader whether
the entry is its own database's. Here all entries are shown, also those that nobody would count.

It only reads the log, and moves nothing. With `--follow` it outlives a restart of Redis.
"""

import argparse
import os
import select
import signal
import sys
import time
from collections.abc import Iterator

import msgspec
import redis

from rocket_rides import settings
from rocket_rides.errors import in_one_line
from rocket_rides.log import Entry, Invalid, Log, as_numbers, decode
from rocket_rides.log.moments import milliseconds, shown
from rocket_rides.log.tail import BATCH, Tail, time_of
from rocket_rides.options import Parser
from rocket_rides.waiting import delays

POLL = 1.0  # seconds that a single read waits for a new entry

_as_json = msgspec.json.Encoder(decimal_format="number").encode


def parse_options(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line, or the end of the process with one clear line."""
    parser = Parser("python -m rocket_rides.log", __doc__)
    of_time = "a duration back from now, such as 90s, 10m, 12h or 7d, or an RFC 3339 time"
    parser.add_argument(
        "--since", type=_moment, help=f"{of_time}; otherwise the start, or with --follow now"
    )
    parser.add_argument(
        "--until", type=_moment, help=f"{of_time}; entries from then on are left out"
    )
    parser.add_argument("--follow", action="store_true", help="wait for new entries, until Ctrl-C")
    parser.add_argument("--limit", type=_positive, metavar="N", help="end after N entries")
    parser.add_argument("--json", action="store_true", help="one JSON object per entry")
    return parser.parse_args(arguments)


def _moment(text: str) -> str:
    try:
        milliseconds(text, 0)
    except ValueError as refusal:
        raise argparse.ArgumentTypeError(f"{text!r}: {refusal}") from None
    return text


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:19]) > 0 and len(text) < 19):
        raise argparse.ArgumentTypeError(f"{text!r}: a whole number above 0 is expected")
    return int(text)


def entries(log: Log, options: argparse.Namespace) -> Iterator[list[Entry]]:
    """The entries that were asked for, in batches; with `--follow`, empty ones while none comes.

    Raises redis.RedisError; once it follows, only if Redis refuses to be read.
    """
    now = log.clock()
    since = milliseconds(options.since, now) if options.since else None if options.follow else 0
    until = milliseconds(options.until, now) if options.until else None
    if not options.follow:  # then what is appended meanwhile is left out, so that there is an end
        beyond = as_numbers(log.last_id())[0] + 1
        until = beyond if until is None else min(until, beyond)
    tail, left = Tail(log, since, until), options.limit or sys.maxsize
    waits, lost = delays(), False
    while left and not tail.ended:
        try:
            batch = tail.next(min(left, BATCH), POLL if options.follow else 0)
            if options.follow and not batch and tail.starts_over():
                _notice("the log was deleted; going on with the new one")
        except redis.ConnectionError as error:
            if not options.follow:
                raise
            if not lost:
                _notice(f"{in_one_line(error)}; going on when it is back")
            lost = True
            time.sleep(next(waits))
            continue
        waits, lost = delays(), False
        left -= len(batch)
        yield batch
        if not (batch or options.follow):
            return


def in_words(entry: Entry) -> str:
    """An entry as a line for a person."""
    when = f"{shown(time_of(entry)) or 'after the year 9999':24}  {entry.redis_id:>20}"
    try:
        record = decode(entry.fields)
    except Invalid as reason:
        return f"{when}  no record: {reason}"
    return f"{when}  ride {record.id}  {record.distance} m"


def in_json(entry: Entry) -> str:
    """An entry as a JSON object in one line."""
    facts: dict[str, object] = {"redis_id": entry.redis_id, "time": shown(time_of(entry))}
    try:
        record = decode(entry.fields)
    except Invalid as reason:
        values = [value.decode(errors="backslashreplace") for value in entry.fields]
        facts |= {"invalid": str(reason), "fields": values}
    else:
        facts |= msgspec.structs.asdict(record) | {
            "term": record.term.decode(errors="backslashreplace")
        }
    return _as_json(facts).decode()


def main() -> None:
    """Print the entries that were asked for."""
    # Ctrl-C ends the process quietly, and the shell sees why.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    options = parse_options()
    if options.follow:  # whose end it is: make is not to call it an error
        signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    config = settings.load()
    line = in_json if options.json else in_words
    try:
        with Log(config.log_url, config.stream_name) as log:
            for batch in entries(log, options):
                if not batch and _nobody_reads():
                    return
                print("".join(f"{line(entry)}\n" for entry in batch), end="", flush=True)  # noqa: T201
    except BrokenPipeError:  # whoever read this has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except redis.ConnectionError as error:
        reason = in_one_line(error).removeprefix("Redis: ").rstrip(".")
        raise SystemExit(f"Redis can't be reached: {reason}") from None
    except redis.RedisError as error:
        raise SystemExit(in_one_line(error)) from None


def _nobody_reads() -> bool:
    """Whether standard output is a pipe that was closed at its other end."""
    poll = select.poll()
    poll.register(sys.stdout, 0)
    return bool(poll.poll(0))


def _notice(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
