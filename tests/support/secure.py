"""Servers that accept only TLS and passwords, with certificates of a private authority.

The servers in the wheels are built without TLS, so these are the system's, as Debian has them.
"""

import random
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
import redis
import trustme

from demo.embedded import stock
from demo.embedded.account import server_account
from demo.embedded.servers import Postgres, Redis
from demo.embedded.stream_servers import REDIS
from lab.ports import free_ports
from rocket_rides.settings import EMBEDDED_PORT, PROJECT
from tests.support.folders import short_folder

PAGE = (PROJECT / "docs/production.md").read_text()
[_, SECTION] = PAGE.split("## Encryption and rights\n")
SECTION = SECTION.partition("\n## ")[0]
ROLES = (PROJECT / "deploy/postgres/roles.sql").read_text()
ACL = (PROJECT / "deploy/redis/users.acl").read_text()
# What follows the user's name, of the page's user in Redis, and of each in the file.
USERS = dict(re.findall(r"^ACL SETUSER (\S+) (.*)$", SECTION, re.M))
USERS |= dict(re.findall(r"^user (?!default)(\S+) (.*)$", re.sub(">[A-Z]+_", ">", ACL), re.M))
[DATABASE_URL] = re.findall(r"^DATABASE_URL='(.*)'$", SECTION, re.M)
[REDIS_URL] = re.findall(r"^REDIS_URL='(.*)'$", SECTION, re.M)
[SENTINELS_USER] = re.findall(r"^ACL SETUSER \S+ (.*[+]sentinel.*)$", PAGE, re.M)
AUTHORITY = "/etc/rides/authority.pem"
PASSWORD = "s3cret"  # noqa: S105
# Who runs the file's statements: no superuser, as on a managed server.
OWNER = """
    CREATE ROLE administrator CREATEROLE;
    GRANT pg_read_all_stats TO administrator WITH ADMIN OPTION;
    ALTER DATABASE rocket_rides OWNER TO administrator;
    SET ROLE administrator
"""
# Whoever can open the socket is the operator; all others need TLS and a password.
HBA = "local all postgres trust\nhostssl all all samehost scram-sha-256\n"


class Secure(NamedTuple):
    """Both servers, with the page's roles in Postgres, and the authority of their certificates."""

    postgres: Postgres
    redis: Redis
    authority: str
    other: str  # an authority that has issued none of them

    def postgres_url(self, role: str = "rides", authority: str = "") -> str:
        """The page's."""
        url = DATABASE_URL.replace("rides:PASSWORD", f"{role}:{PASSWORD}")
        at = f"{self.postgres.settings['listen_addresses']}:{EMBEDDED_PORT}"
        return _url(url, at, authority or self.authority)

    def redis_url(self) -> str:
        """The page's."""
        url = REDIS_URL.replace("PASSWORD", PASSWORD)
        return _url(url, f"127.0.0.1:{self.redis.settings['tls-port']}", self.authority)


def _url(url: str, at: str, authority: str) -> str:
    return re.sub(r"@[^/]*/", f"@{at}/", url.replace(AUTHORITY, authority))


def let_in(control: redis.Redis, user: str, stream: str) -> None:
    """Give a user of Redis the rights that the page names."""
    rights = USERS[user].replace("PASSWORD", PASSWORD).replace("rocket-rides-log", stream)
    command = ("ACL", "SETUSER", user, "reset", *rights.split())
    control.execute_command(*command)  # type: ignore[no-untyped-call]


@contextmanager
def secure_servers() -> Iterator[Secure]:
    """Start such servers. Skips the test where the system has no programs for them."""
    postgres_programs = stock.named(stock.POSTGRES) or system_programs("postgres")
    redis_programs = stock.named(stock.REDIS) or system_programs("redis-server")
    with short_folder() as folder:
        # The embedded Postgres has always the same port, so this one has an address of its own.
        address = f"127.{random.randint(1, 254)}.{random.randint(1, 254)}.{random.randint(1, 254)}"
        authority, other = trustme.CA(), trustme.CA()
        certificate = authority.issue_cert("127.0.0.1", address)
        files = {
            "hba.conf": HBA.encode(),
            "key.pem": certificate.private_key_pem.bytes(),
            "certificate.pem": certificate.cert_chain_pems[0].bytes(),
            "authority.pem": authority.cert_pem.bytes(),
            "other.pem": other.cert_pem.bytes(),
        }
        at = {name: private_file(folder / name, content) for name, content in files.items()}
        postgres = Postgres(
            folder / "data",
            folder / "run",
            {
                "listen_addresses": address,
                "hba_file": at["hba.conf"],
                "log_connections": "on",
                "ssl": "on",
                "ssl_cert_file": at["certificate.pem"],
                "ssl_key_file": at["key.pem"],
            },
        )
        log = Redis(
            folder / "data",
            folder / "run",
            {
                "bind": "127.0.0.1",
                "tls-port": str(free_ports()),
                "tls-auth-clients": "no",
                "tls-ca-cert-file": at["authority.pem"],
                "tls-cert-file": at["certificate.pem"],
                "tls-key-file": at["key.pem"],
            },
            kind=REDIS,
        )
        postgres.programs, log.programs = postgres_programs, redis_programs
        try:
            postgres.start()
            log.start()
            with psycopg.connect(postgres.url, autocommit=True) as operator:
                operator.execute(OWNER)
                operator.execute(ROLES.encode())
                for role in ("rides", "onlooker"):
                    operator.execute(f"ALTER ROLE {role} PASSWORD '{PASSWORD}'")
            yield Secure(postgres, log, at["authority.pem"], at["other.pem"])
        finally:
            postgres.stop()
            log.stop()


def system_programs(name: str) -> Path:
    """The folder of the system's own program."""
    debians = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = debians[-1] if debians else shutil.which(name, path="/usr/bin:/usr/local/bin")
    if not found:
        pytest.skip(f"no {name} with TLS is installed (Debian: postgresql, redis-server)")
    return Path(found).parent


def private_file(path: Path, content: bytes) -> str:
    """A file that only the servers can read."""
    path.write_bytes(content)
    path.chmod(0o600)
    account = server_account()
    shutil.chown(path, account.uid, account.gid)
    return str(path)
