"""`python -m demo.embedded.prompt psql`, or `redis-cli`: a prompt on the server the fleet uses.

That is the embedded server, or the one named by DATABASE_URL or REDIS_URL. Further arguments are
passed on: `python -m demo.embedded.prompt psql -c 'SELECT 1'`. For Postgres this process becomes
psql, so the exit status is psql's, too. For Redis it is a small prompt of our own, because Valkey
comes without one. If the server can't be reached, one line says so.
"""

import os
import shutil
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import redis
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from demo.embedded.failures import NeverStarts
from demo.embedded.programs import installed
from demo.embedded.redis_prompt import converse
from demo.embedded.servers import Postgres
from rocket_rides import database, session_settings, settings
from rocket_rides.errors import Unavailable, in_one_line

TIMEOUT = 5.0  # seconds


def psql(config: settings.Settings, arguments: Sequence[str]) -> NoReturn:
    """Become psql. Raises Unavailable if there is no server, NeverStarts if there is no psql."""
    database.connect(config.postgres_url, "psql").close()
    given = conninfo_to_dict(config.postgres_url)
    # Every user of a machine can read all command lines, so the password goes into the environment.
    # No variable exists for the passphrase of a client key: psql prompts for it.
    given.pop("sslpassword", None)
    password = given.pop("password", None)
    # The wheel's psql matches the embedded server's version, but has no TLS.
    own = None if config.embedded_postgres else shutil.which("psql")
    program = own or f"{installed(Postgres.distribution)}/psql"
    command = [program, f"--dbname={make_conninfo('', **given)}", *arguments]
    environment = {**os.environ, "PSQLRC": _psqlrc()}
    if password:
        environment["PGPASSWORD"] = str(password)
    os.execve(program, command, environment)  # noqa: S606 (no shell)


def _psqlrc() -> str:
    """What psql reads first, as the name of a file: our sessions' settings, then the person's own.

    Such a file is the one way that a pooler can't refuse, and that leaves the prompt as it is.
    """
    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    own = Path(os.environ.get("PSQLRC", "~/.psqlrc")).expanduser()
    with os.fdopen(writer, "w") as file:
        file.write(f"{session_settings.statement({})} \\g /dev/null\n")
        if own.is_file():
            file.write(f"\\i '{own}'\n")
    return f"/dev/fd/{reader}"


def redis_cli(config: settings.Settings, arguments: Sequence[str]) -> None:
    """Send Redis the command, or each line of standard input. Raises Unavailable without Redis."""
    try:
        with redis.Redis.from_url(
            config.log_url, retry=None, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT
        ) as client:
            client.ping()
    except redis.ResponseError:
        pass  # it answered; this user may not PING
    except redis.RedisError as error:
        raise Unavailable(f"Redis can't be reached: {in_one_line(error).rstrip('.')}") from None
    converse(redis.Redis.from_url(config.log_url), arguments)


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
        hint = "; `make fleet` starts it" if embedded else ""
        raise SystemExit(f"{reason}{hint}") from None
    except NeverStarts as reason:
        raise SystemExit(str(reason)) from None


if __name__ == "__main__":
    main()
