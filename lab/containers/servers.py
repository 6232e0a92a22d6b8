"""Debian's Postgres and Redis, in place of the images that are not ours."""

import shutil
import signal
import subprocess
from pathlib import Path

from lab.containers.compose import Failed, Service
from lab.containers.container import Running

ACCOUNT = "postgres"  # made by Debian's package; Redis runs as any


def postgres_programs() -> Path | None:
    """The folder of the newest Postgres from Debian's packages."""
    found = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    return max((path.parent for path in found), key=lambda path: int(path.parts[-2]), default=None)


class Postgres(Running):
    """With the user, the password and the database that the image would make."""

    stop_signal = signal.SIGINT  # the image's

    def __init__(self, service: Service, folder: Path) -> None:
        given, programs, data = service.environment, postgres_programs(), _data(service, folder)
        password = data / "password"
        password.write_text(given["POSTGRES_PASSWORD"])
        where = ["-D", str(data / "data")]
        users = ["--auth=scram-sha-256", f"--username={given['POSTGRES_USER']}"]
        _once([f"{programs}/initdb", *where, *users, f"--pwfile={password}", "--locale=C.UTF-8"])
        database = f"CREATE DATABASE {given['POSTGRES_DB']}"
        _once([f"{programs}/postgres", "--single", *where, "postgres"], database)
        listen = ["-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={data}"]
        super().__init__(service, [f"{programs}/postgres", *where, *listen], folder, user=ACCOUNT)


class Redis(Running):
    """With the options of the file, and the programs' names in Debian."""

    def __init__(self, service: Service, folder: Path) -> None:
        where = ["--dir", str(_data(service, folder))]
        command = [service.command[0].replace("valkey", "redis"), *service.command[1:], *where]
        if service.check:
            check = [word.replace("valkey", "redis") for word in service.check.command]
            service = service._replace(check=service.check._replace(command=check))
        super().__init__(service, command, folder, user=ACCOUNT)


def _data(service: Service, folder: Path) -> Path:
    data = folder / service.name
    data.mkdir(mode=0o700)
    shutil.chown(data, ACCOUNT, ACCOUNT)
    return data


def _once(command: list[str], text: str = "") -> None:
    ran = subprocess.run(
        command, input=text, user=ACCOUNT, group=ACCOUNT, capture_output=True, text=True
    )
    if ran.returncode:
        raise Failed(f"{Path(command[0]).name} failed: {ran.stderr.strip()}")
