"""`python -m embedded.prompt psql`, or `redis-cli`: a prompt on the server that the fleet uses.

It is the embedded server, or the one of DATABASE_URL or REDIS_URL. Further arguments are the
program's own: `python -m embedded.prompt psql -c 'SELECT 1'`. This process becomes that program, so
the exit status is the program's too. A server that can't be reached is said in one line.

Passwords go into the environment: every user of a machine can read the command lines of the others.
"""

import os
import re
import shutil
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import redis
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from redis.connection import SSLConnection, parse_url

from embedded.failures import NeverStarts
from embedded.programs import installed
from embedded.redis_prompt import converse
from embedded.servers import Postgres
from rocket_rides import database, settings
from rocket_rides.errors import Unavailable, in_one_line

TIMEOUT = 5.0

# What redis-py calls it in a URL, and redis-cli on its command line.
TLS_OPTIONS = {
    "ssl_ca_certs": "--cacert",
    "ssl_ca_path": "--cacertdir",
    "ssl_certfile": "--cert",
    "ssl_keyfile": "--key",
}


def psql(config: settings.Settings, arguments: Sequence[str]) -> NoReturn:
    """Become psql. Raises Unavailable without a server, NeverStarts without a psql."""
    database.connect(config.postgres_url, "psql").close()
    given = conninfo_to_dict(config.postgres_url)
    # There is no variable for the passphrase of a client's key: psql asks for that itself.
    given.pop("sslpassword", None)
    password = given.pop("password", None)
    environment = {"PGPASSWORD": str(password)} if password else {}
    # The wheel's psql is of the embedded server's version, but knows no TLS.
    own = None if config.embedded_postgres else shutil.which("psql")
    program = own or f"{installed(Postgres.distribution)}/psql"
    _become([program, f"--dbname={make_conninfo('', **given)}", *arguments], environment)


def redis_cli(config: settings.Settings, arguments: Sequence[str]) -> None:
    """Become redis-cli; without one that will do, a small prompt of our own.

    Raises Unavailable when Redis can't be reached.
    """
    _require_redis(config.log_url)
    given: dict[str, Any] = parse_url(config.log_url)  # type: ignore[no-untyped-call]
    over_tls = given.get("connection_class") is SSLConnection
    for program in _programs("redis-cli", "valkey-cli"):
        if not over_tls or _knows_tls(program):
            password = given.get("password")
            environment = {"REDISCLI_AUTH": password} if password else {}
            _become([program, *options_of_redis_cli(given), *arguments], environment)
    converse(redis.Redis.from_url(config.log_url), arguments)


def _require_redis(url: str) -> None:
    try:
        with redis.Redis.from_url(
            url, retry=None, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT
        ) as client:
            client.ping()
    except redis.ResponseError:
        pass  # it answers; this user may not PING
    except redis.RedisError as error:
        raise Unavailable(f"Redis can't be reached: {in_one_line(error).rstrip('.')}") from None


def _programs(*names: str) -> list[str]:
    """Where there are such programs: the machine's own first, then what came with a wheel."""
    wheels = str(Path(sys.executable).parent)
    path = [folder for folder in os.get_exec_path() if folder != wheels]
    found = [shutil.which(name, path=folder) for folder in [*path, wheels] for name in names]
    return [program for program in found if program]


def _knows_tls(redis_cli: str) -> bool:
    told = subprocess.run([redis_cli, "--help"], capture_output=True, text=True)
    return "--tls" in told.stdout + told.stderr


def options_of_redis_cli(given: Mapping[str, Any]) -> list[str]:
    """The server of a URL, as redis-cli is told of it."""
    host = given.get("host", "localhost")
    options = ["-h", host, "-p", str(given.get("port", 6379))]
    if "path" in given:
        options = ["-s", given["path"]]
    if "username" in given:
        options += ["--user", given["username"]]
    if given.get("connection_class") is SSLConnection:
        options += ["--tls"]
        if re.search(r"[^0-9.]", host) and ":" not in host:  # a name, not an address
            options += ["--sni", host]
        for name, option in TLS_OPTIONS.items():
            if name in given:
                options += [option, given[name]]
        if given.get("ssl_cert_reqs") in ("none", "CERT_NONE"):
            options += ["--insecure"]
    return [*options, "-n", str(given.get("db", 0))]


def _become(command: list[str], environment: Mapping[str, str]) -> NoReturn:
    os.execve(command[0], command, {**os.environ, **environment})  # noqa: S606 (no shell)


PROMPTS = {"psql": psql, "redis-cli": redis_cli}


def main() -> None:
    """Become the program that was asked for."""
    parser = ArgumentParser(prog="python -m embedded.prompt", description=__doc__)
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
