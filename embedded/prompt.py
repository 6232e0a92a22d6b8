"""`python -m embedded.prompt URL [COMMAND...]`: a prompt on a Redis or a Valkey, or one command.

Valkey's wheel has the server alone. This is what a person needs to look at the log, such as
`XREVRANGE rocket-rides-log + - COUNT 3`; Ctrl-D ends it.
"""

import contextlib
import shlex
import sys
from collections.abc import Iterator

import redis

with contextlib.suppress(ImportError):
    import readline  # noqa: F401 (input() then knows the arrow keys)


def main() -> int:
    """Return 0, or 1 when the one command was refused or the server can't be reached."""
    url, *command = sys.argv[1:] or sys.exit(__doc__)
    with redis.Redis.from_url(
        url, protocol=2, retry=None, decode_responses=True, encoding_errors="backslashreplace"
    ) as client:
        client.response_callbacks.clear()  # replies as they come
        if command:
            return _run(client, command)
        status = _run(client, ["PING"])
        while status == 0:
            try:
                command = shlex.split(input("> "))
            except ValueError as error:  # a quotation mark too few
                print(error)
            except (EOFError, KeyboardInterrupt):
                break
            else:
                if command:
                    _run(client, command)
        return status


def _run(client: "redis.Redis", command: list[str]) -> int:
    try:
        reply = client.execute_command(*command)  # type: ignore[no-untyped-call]
    except redis.RedisError as error:
        print(f"(error) {error}")
        return 1
    except KeyboardInterrupt:  # of a command that blocks
        client.connection_pool.disconnect()
        return 1
    print("\n".join(_lines(reply)))
    return 0


def _lines(reply: object) -> Iterator[str]:
    """An array's elements are numbered, arrays within it indented."""
    if not isinstance(reply, list):
        yield "(nil)" if reply is None else str(reply)
        return
    if not reply:
        yield "(empty)"
    for number, element in enumerate(reply, 1):
        label = f"{number}) "
        for line in _lines(element):
            yield label + line
            label = " " * len(label)


if __name__ == "__main__":
    sys.exit(main())
