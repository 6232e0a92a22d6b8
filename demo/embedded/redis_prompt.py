"""A small redis-cli: one command, or one a line, and the replies as redis-cli shows them."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress

import redis


def converse(client: "redis.Redis", command: Sequence[str]) -> None:
    """Send `command`, or without one each line of standard input, and print the replies."""
    client.response_callbacks.clear()
    if command:
        raise SystemExit(0 if _send(client, command) else 1)
    with suppress(ImportError):
        import readline  # noqa: F401 (gives input() a history)
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            try:
                words = shlex.split(input("redis> " if sys.stdin.isatty() else ""))
            except ValueError as error:
                _print(f"(error) {error}")
                continue
            if words and words[0].lower() in ("quit", "exit"):
                return
            if words:
                _send(client, words)


def _send(client: "redis.Redis", words: Sequence[str]) -> bool:
    try:
        reply = client.execute_command(*words)  # type: ignore[no-untyped-call]
    except redis.RedisError as error:
        _print(f"(error) {error}")
        return False
    for line in _lines(reply):
        _print(line)
    return True


def _lines(reply: object) -> Iterator[str]:
    """The lines of a reply, as redis-cli shows it: the items of a list are numbered."""
    match reply:
        case []:
            yield "(empty array)"
        case list():
            for number, item in enumerate(reply, 1):
                first, *rest = _lines(item)
                yield f"{number}) {first}"
                yield from (f"   {line}" for line in rest)
        case dict():  # a list of two as many items to redis-cli, whose protocol has no dictionary
            yield from _lines([part for pair in reply.items() for part in pair])
        case bytes():
            yield reply.decode(errors="backslashreplace")
        case None:
            yield "(nil)"
        case int():
            yield f"(integer) {reply}"
        case _:
            yield str(reply)


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201
