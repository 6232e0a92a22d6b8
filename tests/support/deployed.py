"""Servers and services as docker-compose.yml runs them, but for the containers.

The users, the roles, their passwords and their rights are made by the files in deploy/.
"""

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from demo.embedded.programs import installed
from demo.embedded.servers import Postgres, Redis
from lab.ports import free_ports
from rocket_rides.settings import PROJECT
from tests.support.composed import SERVICES, passed_on
from tests.support.folders import short_folder
from tests.support.world import PATIENCE, Service, World

ADMIN = "admin"
# A person on the socket needs no password, all others do.
HBA = "local all postgres trust\nhost all all samehost scram-sha-256\n"
SECRETS = PROJECT / "deploy/secrets"


class Deployed:
    """The servers of a fleet, and what each of its services is told."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder, self.env = folder, env
        self.address = f"127.{random.randint(1, 254)}.{random.randint(1, 254)}.1"
        self.redis_port = free_ports()
        hba = folder / "hba.conf"
        hba.write_text(HBA)
        hba.chmod(0o644)
        settings = {"listen_addresses": self.address, "hba_file": str(hba)}
        self.postgres = Postgres(folder / "data", folder / "run", settings)

    def environment(self, name: str) -> dict[str, str]:
        """What the service's container is told, with these servers' addresses."""
        given = passed_on(name, self.env)
        given["DATABASE_URL"] = given["DATABASE_URL"].replace("//postgres/", f"//{self.address}/")
        if "REDIS_URL" in given:
            here = f"127.0.0.1:{self.redis_port}"
            given["REDIS_URL"] = given["REDIS_URL"].replace("redis:6379", here)
        return given

    def client(self, user: str, password: str) -> redis.Redis:
        retry = Retry(ConstantBackoff(0.1), int(PATIENCE / 0.1))
        return redis.Redis(
            host="127.0.0.1",
            port=self.redis_port,
            username=user,
            password=password,
            decode_responses=True,
            retry=retry,
        )

    def make_roles(self) -> None:
        """As Postgres' image does, when it has made the database."""
        self.run(
            ["sh", str(PROJECT / "deploy/postgres/init.sh")],
            {
                **self.env,
                "POSTGRES_USER": "postgres",
                "POSTGRES_DB": "rocket_rides",
                "PGHOST": str(self.postgres.sockets),
            },
        )

    def once(self, world: World, name: str) -> None:
        """Run a service that ends."""
        service = self.start(world, name)
        assert service.ends() == 0, service.output.read_text()

    def run(self, command: list[str], env: dict[str, str]) -> None:
        path = os.pathsep.join([str(installed(Postgres.distribution)), os.environ["PATH"]])
        given = {"PATH": path, "DEPLOY": str(PROJECT / "deploy"), **env}
        done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr

    def local(self, word: str) -> str:
        return word.replace("/deploy/", f"{PROJECT}/deploy/")

    @contextmanager
    def log(self, program: str) -> Iterator[redis.Redis]:
        """Valkey, with the users of the file and one more, for the test."""
        deploy = self.folder / "deploy"
        shutil.copytree(PROJECT / "deploy", deploy)
        with (deploy / "redis/users.acl").open("a") as users:
            users.write(f"user {ADMIN} on >{ADMIN} ~* &* +@all\n")
        shell, start = SERVICES["redis"]["entrypoint"]
        own_file = self.folder / "redis.conf"  # as servers outside of containers have
        own_file.write_text(f"bind 127.0.0.1\nport {self.redis_port}\ndir {self.folder}\n")
        options = [str(own_file), *SERVICES["redis"]["command"][1:]]
        command = [shell, self.local(start), program, *options]
        own = {"DEPLOY": str(deploy), "TMPDIR": str(self.folder), "PATH": os.environ["PATH"]}
        with (self.folder / "redis.log").open("wb") as output:
            server = subprocess.Popen(command, env=self.env | own, stdout=output)
        try:
            with self.client(ADMIN, ADMIN) as client:
                yield client
        finally:
            server.terminate()
            server.wait(PATIENCE)

    def start(self, world: World, name: str, **more: str) -> Service:
        """The process of a service."""
        _, _, module, *arguments = SERVICES[name]["command"]
        return world.service(module, *arguments, **self.environment(name), **more)

    def is_healthy(self, world: World, name: str) -> bool:
        """Whether its own check says so, in a place with the same environment."""
        _, _, _, module, *arguments = SERVICES[name]["healthcheck"]["test"]
        return world.service(module, *arguments, **self.environment(name)).ends() == 0


def secrets(*log: str) -> dict[str, str]:
    """What deploy/secrets makes; with the log's URL, also that of each user."""
    made = subprocess.run([SECRETS, *log], capture_output=True, text=True, check=True).stdout
    return dict(line.split("=", 1) for line in made.splitlines())


@contextmanager
def deployed(
    shared: Redis, folder: Path, **settings: str
) -> Iterator[tuple[Deployed, World, redis.Redis]]:
    """Such servers, migrated by their role; the test itself may do anything in them.

    The log's server is another one of the program of `shared`.
    """
    with short_folder() as own:
        fleet = Deployed(own, secrets() | settings)
        try:
            fleet.postgres.start()
            fleet.make_roles()
            world = World(fleet.postgres, shared, fleet.postgres.url, "rocket-rides-log", folder)
            with fleet.log(f"{shared.programs}/{shared.program}") as log, world.exits:
                for name in ("migrate", "rights"):
                    fleet.once(world, name)
                yield fleet, world, log
        finally:
            fleet.postgres.stop()
