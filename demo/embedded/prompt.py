"""`python -m demo.embedded.prompt psql`, or `redis-cli`: a prompt on the server the fleet uses.

That is the embedded server, or the one named by DATABASE_URL or REDIS_URL. Further arguments are
passed on: `python -m demo.embedded.prompt psql -c 'SELECT 1'`. For Postgres this process becomes
psql, so the exit status is psql's, too. Valkey comes without a prompt, so for Redis this is a small
one of our own: one command, or one a line, and the replies as Python writes them. If the server
can't be reached, one line says so.
"""

import os
import shlex
import shutil
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import suppress
from pprint import pp
from typing import NoReturn

import redis
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from demo.embedded.failures import NeverStarts
from demo.embedded.programs import installed
from demo.embedded.servers import Postgres
from rocket_rides import database, fleet, settings
from rocket_rides.errors import Unavailable, in_one_line

TIMEOUT = 5.0  # seconds


def psql(config: settings.Settings, arguments: Sequence[str]) -> NoReturn:
    """Become psql. Raises Unavailable if there is no server, NeverStarts if there is no psql."""
    database.connect(config.postgres_url, "psql").close()
    given = conninfo_to_dict(config.postgres_url)
    # Every user of a machine can read all command lines, so the password goes into the environment.
    # No variable exists for the passphrase of a client key: psql prompts for it.
    given.pop("sslpassword", None)
    if password := given.pop("password", None):
        os.environ["PGPASSWORD"] = str(password)
    # The wheel's psql matches the embedded server's version, but has no TLS.
    own = None if config.embedded_postgres else shutil.which("psql")
    program = own or f"{installed(Postgres.distribution)}/psql"
    os.execv(program, [program, f"--dbname={make_conninfo('', **given)}", *arguments])  # noqa: S606


def redis_cli(config: settings.Settings, arguments: Sequence[str]) -> None:
    """Send Redis the command, or each line of standard input. Raises Unavailable without Redis."""
    client = redis.Redis.from_url(
        config.log_url,
        retry=None,
        socket_connect_timeout=TIMEOUT,
        decode_responses=True,
        encoding_errors="backslashreplace",
    )
    try:
        client.ping()
    except redis.ResponseError:
        pass  # it answered; this user may not PING
    except redis.RedisError as error:
        raise Unavailable(f"Redis can't be reached: {in_one_line(error).rstrip('.')}") from None
    client.response_callbacks.clear()  # as it comes
    if arguments:
        raise SystemExit(0 if _is_answered(client, shlex.join(arguments)) else 1)
    with suppress(ImportError):
        import readline  # noqa: F401 (gives input() a history)
    with suppress(EOFError, KeyboardInterrupt):
        while (line := input("redis> " if sys.stdin.isatty() else "")) not in ("quit", "exit"):
            _is_answered(client, line)


def _is_answered(client: "redis.Redis", line: str) -> bool:
    """Send a command, and print the reply; False if it is an error."""
    try:
        if words := shlex.split(line):
            pp(client.execute_command(*words))  # type: ignore[no-untyped-call]
    except (redis.RedisError, ValueError) as error:  # or its quotes don't match
        print(f"(error) {error}")  # noqa: T201
        return False
    return True


PROMPTS = {"psql": psql, "redis-cli": redis_cli}


def main() -> None:
    """Become the requested prompt."""
    parser = ArgumentParser(prog="python -m demo.embedded.prompt", description=__doc__)
    parser.add_argument("program", choices=PROMPTS)
    program, arguments = parser.parse_args(sys.argv[1:2]).program, sys.argv[2:]
    config = settings.load()
    embedded = config.embedded_postgres if program == "psql" else config.embedded_redis
    try:
        PROMPTS[program](config, arguments)
    except Unavailable as reason:
        nobody = fleet.not_started(config.data_dir) if embedded else ""
        raise SystemExit(nobody or str(reason)) from None
    except NeverStarts as reason:
        raise SystemExit(str(reason)) from None


if __name__ == "__main__":
    main()
